//go:build cases

package cases

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// everyServer runs a subtest with each server of the matrix: Debian's, a current Redis, a current
// Valkey. The runner names the latter two in the environment.
func everyServer(t *testing.T, check func(t *testing.T)) {
	for _, server := range []struct{ name, variable string }{
		{"redis-debian", ""}, {"redis-current", "REDIS_CURRENT_SERVER"}, {"valkey", "VALKEY_SERVER"},
	} {
		t.Run(server.name, func(t *testing.T) {
			if server.variable != "" {
				path := os.Getenv(server.variable)
				if path == "" && os.Getenv("ALLOW_SKIP") == "1" {
					t.Skipf("%s names no server", server.variable)
				}
				if path == "" {
					t.Fatalf("%s names no server: run test/install/servers.sh, or allow skips with ALLOW_SKIP=1", server.variable)
				}
				t.Setenv("REDIS_SERVER", path)
			}
			check(t)
		})
	}
}

// replicated starts a server and a replica of it, in step.
func replicated(t *testing.T) (master, replica *redistest.Server) {
	t.Helper()
	master = redistest.Start(t, redistest.WithArgs("--repl-diskless-sync-delay", "0"))
	replica = redistest.Start(t, redistest.WithArgs("--appendonly", "yes"))
	replica.Do("REPLICAOF", "127.0.0.1", fmt.Sprint(master.Port()))
	watch := &client{master.Client(), t}
	eventually(t, "the replica is in step", func() bool {
		watch.ask("SET", "step", "1")
		return watch.ask("WAIT", "1", "50") == ":1\r\n"
	})
	return master, replica
}

// written is a way to write, whose connection WAIT has to find again.
type written struct {
	name string
	by   func(c *client)
}

var waysToWrite = []written{
	{"on the lane", func(c *client) { c.gets("+OK\r\n", "SET", "k", "v") }},
	{"100 KB", func(c *client) { c.gets("+OK\r\n", "SET", "k", strings.Repeat("x", 100_000)) }},
	{"spoken transaction", func(c *client) {
		c.gets("+OK\r\n", "MULTI")
		c.gets("+QUEUED\r\n", "SET", "k", "v")
		c.gets("*1\r\n+OK\r\n", "EXEC")
	}},
	{"whole transaction", func(c *client) {
		c.sends(pipeline([]string{"MULTI"}, []string{"SET", "k", "v"}, []string{"EXEC"}))
		c.replies("+OK\r\n", "+QUEUED\r\n", "*1\r\n+OK\r\n")
	}},
	{"watched transaction", func(c *client) {
		c.gets("+OK\r\n", "WATCH", "k")
		c.gets("+OK\r\n", "MULTI")
		c.gets("+QUEUED\r\n", "SET", "k", "v")
		c.gets("*1\r\n+OK\r\n", "EXEC")
	}},
	{"then UNWATCH", func(c *client) {
		c.gets("+OK\r\n", "WATCH", "k")
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+OK\r\n", "UNWATCH")
	}},
	{"before a giant reply", func(c *client) {
		c.gets(":3000001\r\n", "SETRANGE", "giant", "3000000", "x")
		c.gets("+OK\r\n", "SET", "k", "v")
		c.ask("GET", "giant")
	}},
	{"in a pipeline of large replies", func(c *client) {
		c.gets(":600001\r\n", "SETRANGE", "large", "600000", "x")
		for range 30 { // until it is expected to go on like that
			c.ask("GET", "large")
		}
		large := []string{"GET", "large"}
		c.sends(pipeline([]string{"GET", "none"}, []string{"SET", "k", "v"}, large, large, large))
		c.replies("$-1\r\n", "+OK\r\n")
		for range 3 {
			c.reply()
		}
	}},
	{"blocking", func(c *client) {
		c.gets(":1\r\n", "RPUSH", "from", "x")
		c.gets(bulk("x"), "BLMOVE", "from", "to", "LEFT", "LEFT", "1")
		c.gets(":1\r\n", "DEL", "to")
		c.gets(":1\r\n", "RPUSH", "from", "x")
		c.gets("*2\r\n"+bulk("from")+bulk("x"), "BLPOP", "from", "1")
	}},
	{"script", func(c *client) { c.gets("+OK\r\n", "EVAL", "return redis.call('SET', KEYS[1], 'v')", "1", "k") }},
	{"then a script that reads", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets(":1\r\n", "EVAL", "return 1", "0")
	}},
	{"in a script that says nothing, then in one that fails", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("$-1\r\n", "EVAL", "redis.call('SET', KEYS[1], 'v')", "1", "k")
		c.ask("EVAL", "redis.call('SET', KEYS[1], 'w') error('no')", "1", "k")
	}},
	{"then another database", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+OK\r\n", "SELECT", "1")
	}},
	{"then the other protocol", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.ask("HELLO", "3")
	}},
	{"then a read that blocks", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("*-1\r\n", "BLPOP", "none", "0.01")
	}},
	{"then WATCH", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+OK\r\n", "WATCH", "other")
	}},
	{"then WATCH and UNWATCH", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+OK\r\n", "WATCH", "other")
		c.gets("+OK\r\n", "UNWATCH")
	}},
	{"100 KB, then WATCH and UNWATCH", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", strings.Repeat("x", 100_000))
		c.gets("+OK\r\n", "WATCH", "other")
		c.gets("+OK\r\n", "UNWATCH")
	}},
	{"100 KB, then CLIENT TRACKING", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", strings.Repeat("x", 100_000))
		c.gets("+OK\r\n", "CLIENT", "TRACKING", "ON")
	}},
	{"then DISCARD", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+OK\r\n", "MULTI")
		c.gets("+QUEUED\r\n", "SET", "k", "w")
		c.gets("+QUEUED\r\n", "SET", "k", strings.Repeat("x", 100_000))
		c.gets("+OK\r\n", "DISCARD")
	}},
	{"then a transaction that reads", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+OK\r\n", "MULTI")
		c.gets("+QUEUED\r\n", "GET", "k")
		c.gets("*1\r\n"+bulk("v"), "EXEC")
	}},
	{"then an empty transaction", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+OK\r\n", "MULTI")
		c.gets("*0\r\n", "EXEC")
	}},
	{"then a transaction that is aborted", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+OK\r\n", "MULTI")
		c.gets("+QUEUED\r\n", "SET", "k", "w")
		c.ask("NOSUCHCOMMAND")
		c.ask("EXEC")
	}},
	{"100 KB, then a whole transaction that reads", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", strings.Repeat("x", 100_000))
		c.sends(pipeline([]string{"MULTI"}, []string{"GET", "none"}, []string{"EXEC"}))
		c.replies("+OK\r\n", "+QUEUED\r\n", "*1\r\n$-1\r\n")
	}},
	{"before a transaction that the write aborts", func(c *client) {
		c.gets("+OK\r\n", "SELECT", "2")
		c.gets("+OK\r\n", "SET", "k", strings.Repeat("x", 100_000))
		c.gets("+OK\r\n", "SELECT", "0")
		c.gets("+OK\r\n", "WATCH", "k")
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+OK\r\n", "MULTI")
		c.gets("+QUEUED\r\n", "SET", "k", "w")
		c.gets("*-1\r\n", "EXEC")
	}},
	{"in a database that is left", func(c *client) {
		c.gets("+OK\r\n", "SELECT", "3")
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+OK\r\n", "SELECT", "0")
	}},
	{"100 KB, in a database that is left", func(c *client) {
		c.gets("+OK\r\n", "SELECT", "3")
		c.gets("+OK\r\n", "SET", "k", strings.Repeat("x", 100_000))
		c.gets("+OK\r\n", "SELECT", "0")
	}},
	{"in a protocol that is left", func(c *client) {
		c.ask("HELLO", "3")
		c.gets("+OK\r\n", "SET", "k", "v")
		c.ask("HELLO", "2")
	}},
	{"in a database that RESET leaves", func(c *client) {
		c.gets("+OK\r\n", "SELECT", "3")
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+RESET\r\n", "RESET")
	}},
	{"before RESET", func(c *client) {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("+RESET\r\n", "RESET")
	}},
}

// WAIT answers for its own connection's writes. Sent by any other it answers at once, and lies: 1
// where no replica has the write. With a stopped replica the truth is 0, whichever way the write
// went, and again when asked again; when the replica goes on, it is 1.
func TestCase62WaitTellsTheTruth(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s, replica := replicated(t)
		f := startProxy(t, s.Addr())
		waits := [][]string{{"WAIT", "1", "60"}}
		truth := map[bool]map[string]string{
			false: {"WAIT": ":0\r\n", "WAITAOF": "*2\r\n:0\r\n:0\r\n"},
			true:  {"WAIT": ":1\r\n", "WAITAOF": "*2\r\n:0\r\n:1\r\n"},
		}
		if !strings.Contains(s.Do("COMMAND", "INFO", "WAITAOF"), "-1\r\n") {
			waits = append(waits, []string{"WAITAOF", "0", "1", "60"})
		} else {
			t.Log("this server knows no WAITAOF")
		}
		settled := func(c *client, args []string) {
			patient := append([]string(nil), args...)
			patient[len(patient)-1] = "10000"
			c.gets(truth[true][args[0]], patient...)
		}
		for _, way := range waysToWrite {
			t.Run(way.name, func(t *testing.T) {
				for _, args := range waits {
					c := &client{connect(t, f.tcp).Client, t}
					replica.Stop()
					way.by(c)
					if stranger := connect(t, s.Addr()).ask(args...); stranger != truth[true][args[0]] {
						t.Errorf("a stranger's %s says %q: this proves nothing", args[0], stranger)
					}
					c.gets(truth[false][args[0]], args...)
					c.gets(truth[false][args[0]], args...)
					replica.Cont()
					settled(c, args)
				}
			})
		}
	})
}

// The same where the only write is one that the proxy itself wants to see the reply of.
func TestWaitAfterAWatchedWrite(t *testing.T) {
	s, replica := replicated(t)
	f := startProxy(t, s.Addr())
	for name, write := range map[string][][]string{
		"alone":            {{"XGROUP", "DESTROY", "s", "g"}},
		"in a transaction": {{"MULTI"}, {"XGROUP", "DESTROY", "s", "g"}, {"EXEC"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.Do("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
			c := connect(t, f.tcp)
			c.gets("+PONG\r\n", "PING")
			replica.Stop()
			defer replica.Cont()
			c.sends(pipeline(write...))
			for range write {
				c.reply()
			}
			c.gets(":0\r\n", "WAIT", "1", "60")
			replica.Cont()
			c.gets(":1\r\n", "WAIT", "1", "10000")
		})
	}
}

// In a pipeline each WAIT asks about what was written before it, while others use the lane.
func TestCase62WaitInAPipeline(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s, replica := replicated(t)
		f := startProxy(t, s.Addr())
		c, neighbour := f.client(), f.client()
		wait := []string{"WAIT", "1", "40"}
		replica.Stop()
		for range 3 {
			c.sends(pipeline([]string{"SET", "a", "1"}, wait, []string{"GET", "a"}, []string{"SET", "a", "2"}, wait, wait, []string{"INCR", "a"}))
			for range 10 {
				neighbour.gets("+OK\r\n", "SET", "n", "v")
			}
			c.replies("+OK\r\n", ":0\r\n", bulk("1"), "+OK\r\n", ":0\r\n", ":0\r\n", ":3\r\n")
		}
		replica.Cont()
		c.gets(":1\r\n", "WAIT", "1", "10000")
		neighbour.gets(bulk("v"), "GET", "n") // a lane is dialled when it is asked for
		eventually(t, "the lanes that carried WAIT are spares", func() bool {
			st := f.Stats()
			return st.PrivateBusy == 0 && st.Lanes <= 2 && st.PrivateIdle < 8
		})
	})
}

// Many who have written on one connection and wait at once, as they do for a replica that is away, wait as
// long as each would alone: not one after the other.
func TestWaitOfMany(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s, replica := replicated(t)
		f := startProxy(t, s.Addr())
		many := make([]*client, 50)
		for i := range many {
			many[i] = connect(t, f.tcp)
		}
		replica.Stop()
		for _, c := range many {
			c.gets("+OK\r\n", "SET", "k", "v")
		}
		wait := func(ms, want string) {
			for _, c := range many {
				c.sends(pipeline([]string{"WAIT", "1", ms}))
			}
			for _, c := range many {
				c.replies(want)
			}
		}
		wait("500", ":0\r\n")
		replica.Cont()
		wait("10000", ":1\r\n")
	})
}

// The connection of the last write is lost: no other can answer, and the client is told so.
func TestCase62WaitAfterALoss(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	c := f.client()
	c.gets("+OK\r\n", "SET", "k", "v")
	s.Do("CLIENT", "KILL", "TYPE", "normal")
	eventually(t, "the lane is back", func() bool { return c.ask("GET", "k") == bulk("v") })
	c.gets("-ERR streamproxy: the connection that carried your last write is lost; WAIT cannot answer\r\n", "WAIT", "0", "10")
	c.gets("+OK\r\n", "SET", "k", "v")
	c.gets(":0\r\n", "WAIT", "0", "10")
}

// A client that leaves while its WAIT asks one connection after the other leaves nothing that waits for
// ever: not where it wrote first, as a newcomer, either.
func TestWaitOfWhoLeavesIsCalledBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	blocked := func(n int) func() bool {
		return func() bool { return s.Info("clients", "blocked_clients") == fmt.Sprint(n) }
	}
	for range 20 {
		c := connect(t, f.tcp)
		for range 3 { // on the newcomers' lane, and on another since
			c.gets("+OK\r\n", "SET", "k", "v")
		}
		c.sends(pipeline([]string{"WAIT", "1", "0"}))
		eventually(t, "it waits", blocked(1))
		_ = c.Close()
		eventually(t, "nothing waits", blocked(0))
	}
}

// A replica synchronises through the proxy and keeps following, also over pauses longer than the
// upstream timeout, and the proxy outlives it.
func TestReplicaThroughTheProxy(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s := redistest.Start(t, redistest.WithArgs("--repl-diskless-sync-delay", "0"))
		f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.UpstreamTimeout = 500 * time.Millisecond })
		c := f.client()
		fill := redistest.Command("EVAL", "for i = 1, 20000 do redis.call('SET', 'k' .. i, i) end return 1", "0")
		c.sends(fill)
		c.replies(":1\r\n")
		replica := redistest.Start(t)
		_, port, _ := strings.Cut(f.tcp, ":")
		replica.Do("REPLICAOF", "127.0.0.1", port)
		eventually(t, "the replica has it all", func() bool { return replica.Do("DBSIZE") == ":20000\r\n" })
		for i := range 3 {
			<-time.After(700 * time.Millisecond) // the link says nothing for longer than the timeout
			value := fmt.Sprint("after pause ", i)
			c.gets("+OK\r\n", "SET", "follow", value)
			eventually(t, "the replica follows", func() bool { return replica.Do("GET", "follow") == bulk(value) })
			c.gets(":1\r\n", "WAIT", "1", "5000")
		}
		if full := s.Info("stats", "sync_full"); full != "1" {
			t.Errorf("%s full synchronisations, want one", full)
		}
		replica.Kill()
		eventually(t, "the server has no replica", func() bool { return s.Info("replication", "connected_slaves") == "0" })
		c.gets("+OK\r\n", "SET", "follow", "alone")
	})
}

// A connection that somebody has taken for good comes back to nobody. WAIT says so at once, not when
// an upstream's whole time is over.
func TestWaitOnATakenConnection(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.UpstreamWait = time.Hour })
	writer := f.client()
	writer.gets("+OK\r\n", "WATCH", "k")
	writer.gets("+OK\r\n", "MULTI")
	writer.gets("+QUEUED\r\n", "INCR", "k")
	writer.gets("*1\r\n:1\r\n", "EXEC")
	for range f.Stats().PrivateIdle + 1 { // each takes one, and the last takes the writer's
		f.client().gets("*3\r\n"+bulk("subscribe")+bulk("ch")+":1\r\n", "SUBSCRIBE", "ch")
	}
	const lost = "-ERR streamproxy: the connection that carried your last write is lost; WAIT cannot answer\r\n"
	if got := writer.ask("WAIT", "0", "1"); got != lost && got != ":0\r\n" {
		t.Errorf("WAIT: %q", got)
	}
	writer.gets(":2\r\n", "INCR", "k")
	writer.gets(":0\r\n", "WAIT", "1", "1")
}

// What a refused SELECT went over wrote nothing, and WAIT goes to where the last write did.
func TestCase62WaitBehindARefusedSelect(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	large := strings.Repeat("v", 70<<10) // it travels over a private connection
	for _, db := range []string{"-1", "99"} {
		for range 5 {
			c := connect(t, f.tcp)
			c.sends(pipeline([]string{"SET", "a", large}, []string{"SELECT", db}, []string{"WAIT", "0", "10"}))
			c.replies("+OK\r\n", "-ERR DB index is out of range\r\n", ":0\r\n")
			_ = c.Close()
		}
	}
}

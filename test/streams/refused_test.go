//go:build streams

package streams

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// asks are the ways in which abandoned entries of the stream s are asked for.
func asks(sha string) [][][]string {
	form := (&twins{sha: sha}).form("s", "token")
	return [][][]string{{claimCommand("s", "g", "c", minIdleMillis, "10")}, form}
}

// refused fails the test unless a client of the proxy hears, in all ways of asking, what the server
// itself says, which must contain the word.
func refused(t *testing.T, word string, proxied, plain *client, sha string) {
	t.Helper()
	for _, commands := range asks(sha) {
		got, want := strings.Join(proxied.all(commands...), ""), strings.Join(plain.all(commands...), "")
		if got != want {
			t.Errorf("%s: got %.300q\nwant %.300q", commands[0][0], got, want)
		}
		if !strings.Contains(want, word) {
			t.Errorf("%s: the server says %q: this proves nothing", commands[0][0], want)
		}
	}
}

// stale is a server with one abandoned entry in the stream s, of which the proxy knows, and which
// nobody has asked for yet.
func stale(t *testing.T, opts ...redistest.Option) (s *redistest.Server, f *front, at, c *client) {
	t.Helper()
	s = redistest.Start(t, opts...)
	f = startProxy(t, s.Addr())
	at, c = direct(t, s), f.client()
	groups(at, "g", []string{"s"})
	c.learn("g", "c", minIdleMillis, "s")
	deliver(at, "s", "g", "dead", time.Hour, "1-1")
	c.state("s", "g", "hot")
	return s, f, at, c
}

// served waits until the entry arrives. What kept the server from serving must not have been taken
// for a ban.
func served(t *testing.T, f *front, c *client) {
	t.Helper()
	eventually(t, "the entry arrives", func() bool {
		return strings.Contains(c.ask(claimCommand("s", "g", "c", minIdleMillis, "10")...), entries("1-1"))
	})
	if n := f.count("forwarded denied"); n != 0 {
		t.Errorf("%d were forwarded as denied", n)
	}
}

// The server becomes a replica of the one that was its replica, and is made the master again: a
// failover and back. As long as it may not write, its clients hear so from itself.
func TestReadOnly(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s, f, at, c := stale(t)
		sha := at.loadRelease()
		other := redistest.Start(t)
		follow(t, other, s)
		other.Do("REPLICAOF", "NO", "ONE")
		follow(t, s, other)
		refused(t, "READONLY", c, direct(t, s), sha)
		if got := direct(t, other).pendings("s", "g"); len(got) != 1 || got[0].owner != "dead" {
			t.Errorf("at the new master: %+v", got)
		}
		s.Do("REPLICAOF", "NO", "ONE")
		served(t, f, c)
	})
}

// follow makes one server a replica of another and waits until it is in step.
func follow(t *testing.T, replica, master *redistest.Server) {
	t.Helper()
	master.Do("CONFIG", "SET", "repl-diskless-sync-delay", "0")
	replica.Do("REPLICAOF", "127.0.0.1", fmt.Sprint(master.Port()))
	eventually(t, "the replica is in step", func() bool {
		return replica.Info("replication", "master_link_status") == "up"
	})
}

// The server loads its data anew, which takes it a while, in which it answers that it does.
func TestLoading(t *testing.T) {
	t.Parallel()
	_, f, at, c := stale(t, redistest.WithArgs("--enable-debug-command", "yes",
		"--loading-process-events-interval-bytes", "1024", "--key-load-delay", "1000"))
	sha := at.loadRelease()
	at.ask("EVAL", "for i = 1, 2000 do redis.call('SET', 'key' .. i, string.rep('x', 100)) end", "0")
	loader := connect(t, at.Conn.RemoteAddr().String())
	loader.sends("DEBUG", "RELOAD")
	eventually(t, "it loads", func() bool { return strings.HasPrefix(at.ask("PING"), "-LOADING") })
	refused(t, "LOADING", c, at, sha)
	loader.Timeout = patience
	if got := loader.reply(); got != "+OK\r\n" {
		t.Fatalf("DEBUG RELOAD: %q", got)
	}
	served(t, f, c)
}

// What a client may do, and what a stream is, changes while its entries wait to be asked for.
func TestChangedMeanwhile(t *testing.T) {
	changes := []struct {
		word    string
		change  []string
		another []string // does it too, with what is there then
	}{
		{"NOPERM", []string{"ACL", "SETUSER", "default", "-xautoclaim"}, nil},
		{"NOPERM", []string{"ACL", "SETUSER", "default", "resetkeys", "~autoclaim:*", "~streamproxy:*"}, nil},
		{"NOGROUP", []string{"XGROUP", "DESTROY", "s", "g"}, nil},
		{"NOGROUP", []string{"DEL", "s"}, nil},
		{"NOGROUP", []string{"RENAME", "s", "t"}, nil},
		{"NOGROUP", []string{"PEXPIRE", "s", "1"}, []string{"EXISTS", "s"}},
		{"NOGROUP", []string{"FLUSHALL"}, []string{"SCRIPT", "LOAD", releaseScript}},
		{"WRONGTYPE", []string{"SET", "s", "v"}, nil},
	}
	everyServer(t, func(t *testing.T) {
		for _, tt := range changes {
			t.Run(strings.Join(tt.change, " "), func(t *testing.T) {
				_, _, at, c := stale(t)
				sha := at.loadRelease()
				at.ask(tt.change...)
				if tt.another != nil {
					<-time.After(2 * time.Millisecond) // the server's own clock has to go on
					at.ask(tt.another...)
				}
				refused(t, tt.word, c, at, sha)
			})
		}
	})
}

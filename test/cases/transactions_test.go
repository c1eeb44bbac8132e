//go:build cases

package cases

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// proxyForgets is how long the proxy remembers how many transactions there were at a time. After it
// some of the connections are closed if there were fewer, and opened when there are more again.
const proxyForgets = 30 * time.Second

// received is how many connections the server has ever accepted.
func received(t testing.TB, watch *client) int {
	t.Helper()
	for line := range strings.Lines(watch.ask("INFO", "stats")) {
		if n, ok := strings.CutPrefix(line, "total_connections_received:"); ok {
			count, err := strconv.Atoi(strings.TrimSpace(n))
			if err != nil {
				t.Fatal(err)
			}
			return count
		}
	}
	t.Fatal("the server counts no connections")
	return 0
}

// oneAfterAnother is a transaction spoken step by step; whole is the same in one write.
func oneAfterAnother(c *redistest.Client, key string) error {
	for _, step := range [][]string{{"WATCH", key, "+OK\r\n"}, {"MULTI", "+OK\r\n"}, {"INCR", key, "+QUEUED\r\n"}} {
		last := len(step) - 1
		if got, err := c.Do(step[:last]...); err != nil || got != step[last] {
			return fmt.Errorf("%v: got %q, %w", step, got, err)
		}
	}
	return executed(c.Do("EXEC"))
}

func whole(c *redistest.Client, key string) error {
	if err := c.Send(redistest.Command("MULTI") + redistest.Command("INCR", key) + redistest.Command("EXEC")); err != nil {
		return err
	}
	for _, want := range []string{"+OK\r\n", "+QUEUED\r\n"} {
		if got, err := c.ReadReply(); err != nil || got != want {
			return fmt.Errorf("got %q, want %q, %w", got, want, err)
		}
	}
	return executed(c.ReadReply())
}

func executed(reply string, err error) error {
	if err != nil || !strings.HasPrefix(reply, "*1\r\n:") {
		return fmt.Errorf("EXEC: got %q, %w", reply, err)
	}
	return nil
}

// A proxy that opened a connection for each MULTI wore its server out. A thousand transactions a
// second, spoken or whole, open none once each client has had one at the same time as the others.
// The long form lasts a minute, CASES_LONG=1; this one a few seconds.
func TestCase21TransactionsOpenNoConnections(t *testing.T) {
	const clients, perSecond = 20, 1000
	lasts := 3 * time.Second
	if os.Getenv("CASES_LONG") == "1" {
		lasts = time.Minute
	}
	n := int(lasts.Seconds()) * perSecond / clients
	for name, transaction := range map[string]func(*redistest.Client, string) error{"interactive": oneAfterAnother, "whole": whole} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			f := startProxy(t, s.Addr())
			watch := &client{s.Client(), t}
			crowd := warmCrowd(f, clients)
			before, began := received(t, watch), time.Now()
			var done sync.WaitGroup
			for i, c := range crowd {
				done.Go(func() {
					repeatTransaction(t, c.Client, fmt.Sprint("n", i), n, time.Second*clients/perSecond, transaction)
				})
			}
			done.Wait()
			took, opened := time.Since(began), received(t, watch)-before
			t.Logf("%.0f transactions a second opened %d connections", float64(n*clients)/took.Seconds(), opened)
			if allowed := int(took / proxyForgets); opened > allowed*clients/4 {
				t.Errorf("%d connections were opened, beside the %d that were there", opened, before)
			}
		})
	}
}

// warmCrowd returns clients that have all been in a transaction at the same time, when what that
// opened has come to rest.
func warmCrowd(f *front, n int) []*client {
	crowd := make([]*client, n)
	for i := range crowd {
		crowd[i] = f.client()
		crowd[i].gets("$-1\r\n", "GET", "k") // the first makes a lane of a spare
		crowd[i].gets("+OK\r\n", "WATCH", "k")
	}
	spares := proxy.DefaultConfig().PrivateMinIdle
	eventually(f.t, "there are spares beside", func() bool { return f.Stats().PrivateIdle >= spares })
	for _, c := range crowd {
		c.gets("+OK\r\n", "UNWATCH")
	}
	eventually(f.t, "the connections are at rest", func() bool { return f.Stats().PrivateIdle >= n+spares })
	return crowd
}

func repeatTransaction(t *testing.T, c *redistest.Client, key string, n int, every time.Duration, transaction func(*redistest.Client, string) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range n {
		if err := transaction(c, key); err != nil {
			t.Errorf("%s: %v", key, err)
			return
		}
		<-tick.C
	}
}

// A second MULTI on a connection is an error of the client's, and costs no second connection.
func TestCase22NestedMulti(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	watch := &client{s.Client(), t}
	c := f.client()
	c.gets("+OK\r\n", "MULTI")
	awaitSpares(t, f)
	before := received(t, watch)
	eventually(t, "the dials to end that were begun for the first one", func() bool {
		last := before
		<-time.After(50 * time.Millisecond)
		before = received(t, watch)
		return before == last
	})
	for range 3 {
		c.gets("-ERR MULTI calls can not be nested\r\n", "MULTI")
	}
	if busy := f.Stats().PrivateBusy; busy != 1 {
		t.Errorf("%d private connections for one transaction", busy)
	}
	c.gets("+QUEUED\r\n", "SET", "a", "1")
	c.gets("*1\r\n+OK\r\n", "EXEC")
	if after := received(t, watch); after != before {
		t.Errorf("%d connections before the second MULTI, %d after it", before, after)
	}
}

// A client that leaves within its transaction must not hand it on with the connection. As often as
// there are connections in the pool, and more often, nobody gets +QUEUED and nothing is set.
func TestCase23DirtyMulti(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	heir := f.client()
	for round := range 12 {
		leaver := f.client()
		switch round % 3 {
		case 0:
			leaver.gets("+OK\r\n", "MULTI")
			leaver.gets("+QUEUED\r\n", "SET", "a", "1")
		case 1:
			leaver.gets("+OK\r\n", "WATCH", "b")
			leaver.gets("+OK\r\n", "MULTI")
			leaver.gets("+QUEUED\r\n", "SET", "a", "1")
		case 2: // its replies may never have been written
			leaver.sends(redistest.Command("MULTI") + redistest.Command("SET", "a", "1"))
		}
		reset(leaver.Conn)
		heir.gets("$-1\r\n", "GET", "a")
		heir.gets(":1\r\n", "RPUSH", "list", "x")
		heir.gets("*2\r\n"+bulk("list")+bulk("x"), "BLPOP", "list", "1") // by a private connection
		if err := oneAfterAnother(heir.Client, "n"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the leavers' connections are gone", func() bool { return f.Stats().PrivateBusy == 0 })
	heir.gets("$-1\r\n", "GET", "a")
}

// EXEC with nothing queued answers an empty array, and takes the watch with it.
func TestCase24EmptyExec(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	c, other := f.client(), f.client()
	for name, run := range map[string]func(){
		"spoken": func() {
			c.gets("+OK\r\n", "WATCH", "k")
			c.gets("+OK\r\n", "MULTI")
			c.gets("*0\r\n", "EXEC")
		},
		"in one write": func() {
			c.sends(redistest.Command("WATCH", "k") + redistest.Command("MULTI") + redistest.Command("EXEC"))
			c.replies("+OK\r\n", "+OK\r\n", "*0\r\n")
		},
	} {
		run()
		other.gets("+OK\r\n", "SET", "k", name)
		c.gets("+OK\r\n", "MULTI")
		c.gets("+QUEUED\r\n", "SET", "mine", name)
		c.gets("*1\r\n+OK\r\n", "EXEC")
	}
}

// A transaction whose connection is lost takes its client's with it: what the client says next
// would otherwise run unguarded, or outside of the transaction it believes to be in.
func TestCase57LostTransaction(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	for _, opening := range [][]string{{"WATCH", "bal"}, {"MULTI"}} {
		for round := range 20 {
			s.Do("SET", "bal", "mine")
			var c *client
			eventually(t, "a connection that the last round has left", func() bool {
				c = f.client()
				got, err := c.Do(opening...)
				return err == nil && got == "+OK\r\n"
			})
			killed := make(chan string)
			go func() { killed <- s.Do("CLIENT", "KILL", "TYPE", "normal") }()
			if round%2 == 0 { // else what follows is on its way while the connection dies
				<-killed
				s.Do("SET", "bal", "theirs")
			}
			rest := [][]string{{"SET", "bal", "lost update"}, {"EXEC"}, {"QUIT"}}
			if opening[0] == "WATCH" {
				rest = append([][]string{{"MULTI"}}, rest...)
			}
			_ = c.Send(pipeline(rest...)) // the connection may be closed already
			text := untilEnd(c)
			if round%2 == 1 {
				<-killed
			}
			// The kill may have come behind EXEC, or between EXEC and its reply.
			won, unsure := strings.Contains(text, "*1\r\n+OK\r\n"), round%2 == 1 && strings.Contains(text, unknownOutcome)
			lost := s.Do("GET", "bal") == bulk("lost update")
			if lost && !won && !unsure || won && !lost || round%2 == 0 && s.Do("GET", "bal") != bulk("theirs") {
				got := s.Do("GET", "bal")
				t.Fatalf("%v, round %d: the client heard %q, and bal is %q", opening, round, text, got)
			}
		}
	}
}

// pipeline renders commands behind one another.
func pipeline(commands ...[]string) string {
	var b strings.Builder
	for _, args := range commands {
		b.WriteString(redistest.Command(args...))
	}
	return b.String()
}

// untilEnd reads what a connection still brings. A reset is an end like any other.
func untilEnd(c *client) string {
	_ = c.Conn.SetReadDeadline(time.Now().Add(patience))
	var b strings.Builder
	for {
		got, err := c.ReadReply()
		b.WriteString(got)
		if isTimeout(err) {
			c.t.Fatalf("the connection does not end; it brought %q", b.String())
		}
		if err != nil {
			return b.String()
		}
	}
}

// Parked consumers have a limit of their own: the producer that would wake them gets its
// transaction through. Only other transactions can use up those.
func TestCase60ParkedConsumersAndTheProducer(t *testing.T) {
	t.Parallel()
	const parked, quota = 64, 4
	s := redistest.Start(t)
	f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.PrivateMax, c.UpstreamWait = quota, 300*time.Millisecond })
	watch := &client{s.Client(), t}
	consumers := make([]*client, parked)
	for i := range consumers {
		consumers[i] = f.client()
		consumers[i].sends(redistest.Command("BLPOP", "jobs", "0"))
	}
	blockedClients(t, watch, fmt.Sprint(parked))
	producers := make([]*client, quota)
	for i := range producers {
		producers[i] = f.client()
		producers[i].gets("+OK\r\n", "WATCH", "guard")
	}
	surplus := f.client()
	surplus.gets("-ERR streamproxy: limit of transactions reached (--private-max); command not sent\r\n", "WATCH", "guard")
	for i := range parked {
		p := producers[i%quota]
		p.gets("+OK\r\n", "MULTI")
		p.gets("+QUEUED\r\n", "RPUSH", "jobs", "job")
		p.gets("*1\r\n:1\r\n", "EXEC")
		if i == 0 {
			surplus.gets("+OK\r\n", "WATCH", "guard")
			surplus.gets("+OK\r\n", "UNWATCH")
		}
	}
	for _, c := range consumers {
		c.replies("*2\r\n" + bulk("jobs") + bulk("job"))
	}
}

// What does not end a transaction leaves its connection, its watches and its queue as they are: an
// EXEC without MULTI, and whatever has arguments that it cannot have.
func TestWhatEndsNoTransaction(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	c, other := f.client(), f.client()
	for _, mistake := range [][]string{{"EXEC"}, {"DISCARD"}, {"UNWATCH", "k"}, {"MULTI", "k"}, {"WATCH"}, {"DISCARD", "k"}} {
		c.gets("+OK\r\n", "WATCH", "k")
		if got := c.ask(mistake...); !strings.HasPrefix(got, "-ERR") {
			t.Errorf("%v: %q", mistake, got)
		}
		other.ask("INCR", "k")
		c.gets("+OK\r\n", "MULTI")
		c.gets("+QUEUED\r\n", "SET", "k", "lost update")
		c.gets("*-1\r\n", "EXEC")
	}
	for _, mistake := range [][]string{{"DISCARD", "k"}, {"UNWATCH", "k"}, {"MULTI", "k"}, {"MULTI"}, {"WATCH", "k"}} {
		c.gets("+OK\r\n", "MULTI")
		if got := c.ask(mistake...); !strings.HasPrefix(got, "-ERR") {
			t.Errorf("%v within MULTI: %q", mistake, got)
		}
		c.gets("+QUEUED\r\n", "SET", "k", "torn")
		if got := c.ask("EXEC"); got != "*1\r\n+OK\r\n" && !strings.HasPrefix(got, "-EXECABORT") {
			t.Errorf("%v within MULTI, then EXEC: %q", mistake, got)
		}
	}
}

// Where the server refuses to end a transaction, what follows is still a part of it there. So the
// client ends with its connection, and the rest of its pipeline is not run by itself.
func TestRefusedDiscardEndsTheClient(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("ACL", "SETUSER", "keeper", "on", "nopass", "~*", "+@all", "-discard")
	f := startProxy(t, s.Addr())
	for round := range 40 {
		c := f.client()
		c.gets("+OK\r\n", "AUTH", "keeper", "any")
		c.gets("+OK\r\n", "MULTI")
		if round%2 == 0 {
			c.sends(pipeline([]string{"DISCARD"}, []string{"SET", "k", "torn"}, []string{"SET", "k", "torn too"}))
		} else {
			c.sends(pipeline([]string{"DISCARD"}))
		}
		if text := untilEnd(c); !strings.HasPrefix(text, "-NOPERM") || strings.Contains(text, "OK") {
			t.Fatalf("round %d: %q", round, text)
		}
		if got := s.Do("EXISTS", "k"); got != ":0\r\n" {
			t.Fatalf("round %d: what followed was run", round)
		}
	}
	eventually(t, "the places in the quota are free", func() bool { return f.Stats().PrivateBusy == 0 })
}

// Where the server has refused to begin a transaction, its refusal to end it tears nothing: what was
// sent in between has been executed, and the client goes on. What has begun beside goes on as well.
func TestRefusedEndOfWhatNeverBegan(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s := redistest.Start(t)
		s.Do("ACL", "SETUSER", "meek", "on", "nopass", "~*", "+get", "+set", "+echo")
		s.Do("ACL", "SETUSER", "watcher", "on", "nopass", "~*", "+get", "+set", "+echo", "+watch")
		f := startProxy(t, s.Addr())
		talkAlike(t, s, f, []talk{
			{"meek", []string{"WATCH k", "GET k", "UNWATCH", "GET k"}},
			{"meek", []string{"WATCH k", "MULTI", "SET k v", "EXEC", "GET k", "UNWATCH", "UNWATCH", "GET k"}},
			{"meek", []string{"MULTI", "SET k w", "DISCARD", "GET k", "WATCH k", "DISCARD", "EXEC", "GET k"}},
			{"meek", []string{"MULTI", "UNWATCH", "SET k v", "EXEC", "EXEC", "GET k"}},
			{"meek", []string{"MULTI", "SELECT 1", "SET k w", "EXEC", "GET k", "DISCARD", "GET k"}},
			{"watcher", []string{"WATCH k", "MULTI", "SET k v", "EXEC", "GET k", "DISCARD", "EXEC", "GET k"}},
			{"watcher", []string{"MULTI", "WATCH k", "SET k w", "DISCARD", "GET k"}},
		})
		eventually(t, "the places in the quota are free", func() bool { return f.Stats().PrivateBusy == 0 })
	})
}

// An EXEC with arguments, which the server refuses, is the end of the transaction all the same.
func TestRefusedExecEndsTheTransaction(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s := redistest.Start(t)
		f := startProxy(t, s.Addr())
		talkAlike(t, s, f, []talk{
			{"default", []string{"MULTI", "EXEC x", "EXEC", "PING"}},
			{"default", []string{"MULTI", "SET k v", "EXEC x y", "ECHO k", "DISCARD", "MULTI", "SET k w", "EXEC", "GET k"}},
			{"default", []string{"WATCH k", "EXEC x", "SET k u", "MULTI", "GET k", "EXEC", "EXEC x", "GET k"}},
			{"default", []string{"WATCH k", "MULTI", "EXEC x", "UNWATCH", "GET k"}},
		})
		eventually(t, "the places in the quota are free", func() bool { return f.Stats().PrivateBusy == 0 })
	})
}

// talk is what a user says.
type talk struct {
	user     string
	commands []string
}

// talkAlike has it said to the server, and through the proxy command by command and in one piece, and
// wants the same replies.
func talkAlike(t *testing.T, s *redistest.Server, f *front, talks []talk) {
	t.Helper()
	for _, k := range talks {
		direct, stepwise, whole := connect(t, s.Addr()), f.client(), f.client()
		clients := []*client{direct, stepwise, whole}
		for _, c := range clients {
			c.gets("+OK\r\n", "AUTH", k.user, "any")
		}
		var all [][]string
		var want []string
		for _, command := range k.commands {
			args := strings.Fields(command)
			reply := direct.ask(args...)
			stepwise.gets(reply, args...)
			all, want = append(all, args), append(want, reply)
		}
		whole.sends(pipeline(all...))
		whole.replies(want...)
		whole.silent()
		for _, c := range clients {
			_ = c.Close()
		}
	}
}

//go:build cases

package cases

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// timeout sets how long a silent upstream is waited for, and one that is not there.
func timeout(d time.Duration) func(*proxy.Config) {
	return func(c *proxy.Config) {
		c.UpstreamTimeout, c.DialTimeout = d, d
		c.UpstreamWait = min(c.UpstreamWait, d)
	}
}

// A reply that comes after its command has been given up must not answer the next one.
func TestCase05LateReply(t *testing.T) {
	t.Parallel()
	u := startFake(t)
	f := startProxy(t, u.addr, timeout(time.Second))
	c1, c2 := f.client(), f.client()
	for _, late := range []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond} {
		c1.sends(redistest.Command("GET", "a"))
		stale := u.next("GET", "a")
		c1.replies(unknownOutcome)
		wait := time.After(late)
		c2.sends(redistest.Command("GET", "b"))
		fresh := u.next("GET", "b")
		c1.sends(redistest.Command("GET", "c"))
		next := u.next("GET", "c")
		<-wait
		if err := stale.answer(bulk("value of a")); err != nil {
			t.Logf("the late reply could not be sent any more: %v", err)
		}
		if err := errors.Join(fresh.answer(bulk("value of b")), next.answer(bulk("value of c"))); err != nil {
			t.Fatal(err)
		}
		c2.replies(bulk("value of b"))
		c1.replies(bulk("value of c"))
	}
}

// New requests re-armed the timer of a silent upstream, so that it never fired under load. With a
// command every quarter of T, of several clients, the first fails at T, and those behind it with it.
func TestCase10NewRequestsDoNotRearm(t *testing.T) {
	t.Parallel()
	const T = 800 * time.Millisecond
	u := startFake(t)
	f := startProxy(t, u.addr, timeout(T))
	first := f.client()
	first.sends(redistest.Command("GET", "first"))
	u.next("GET", "first")
	start := time.Now()
	stop, later := make(chan struct{}), make(chan *client, 1000)
	go func() { // ends with stop, which is closed below
		defer close(later)
		for tick := time.NewTicker(T / 4); ; {
			select {
			case <-tick.C:
			case <-stop:
				tick.Stop()
				return
			}
			c, err := redistest.Dial(f.tcp)
			if err != nil || c.SendCommand("GET", "later") != nil {
				t.Errorf("a later client: %v", err)
				return
			}
			later <- &client{c, t}
		}
	}()
	reply, err := first.ReadReply()
	took := time.Since(start)
	close(stop)
	if err != nil || reply != unknownOutcome {
		t.Fatalf("the first command: %q, %v", reply, err)
	}
	if took < T*9/10 || took > 2*T {
		t.Errorf("the first command failed after %v, want %v", took, T)
	}
	n := 0
	for c := range later {
		if got := c.reply(); n < 2 && got != unknownOutcome || !slices.Contains([]string{unknownOutcome, notSent}, got) {
			t.Errorf("later command %d: %q", n, got)
		}
		_ = c.Close()
		n++
	}
	if n < 2 {
		t.Errorf("only %d commands came behind the first", n)
	}
}

// A backend that vanishes without a word, in the middle of traffic, and one that was never there:
// commands fail in time and say how; when it is back, all is well again.
func TestCase11ServerStops(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	before := startProxy(t, s.Addr(), timeout(300*time.Millisecond))
	c1, c2 := before.client(), before.client()
	c1.gets("+OK\r\n", "SET", "k", "v")
	shareLane(t, before, c1, c2)
	s.Stop()
	after := startProxy(t, s.Addr(), timeout(300*time.Millisecond))
	c3 := after.client()
	start := time.Now()
	c1.sends(redistest.Command("GET", "k") + redistest.Command("GET", "k"))
	c3.sends(redistest.Command("GET", "k"))
	c1.replies(unknownOutcome, unknownOutcome)
	c2.gets(notSent, "GET", "k")
	c3.replies(notSent)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the clients waited %v", took)
	}
	s.Cont()
	for _, c := range []*client{c1, c2, c3} {
		eventually(t, "a reply again", func() bool { return c.ask("GET", "k") == bulk("v") })
	}
}

// The same with a network that loses every packet, which no FIN and no refusal announces.
func TestCase11PacketsLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	link := startLink(t, s.Addr())
	f := startProxy(t, link.Addr(), timeout(300*time.Millisecond))
	c := f.client()
	c.gets("+OK\r\n", "SET", "k", "v")
	for _, dirs := range [][]netlab.Dir{{netlab.ToUpstream}, {netlab.ToClient}, {netlab.ToUpstream, netlab.ToClient}} {
		for _, d := range dirs {
			link.Drop(d, true)
		}
		start := time.Now()
		c.gets(unknownOutcome, "GET", "k")
		// A connection that was dialled before may be tried once more, not each of them.
		if got := c.ask("GET", "k"); got != notSent && got != unknownOutcome {
			t.Fatalf("got %q", got)
		}
		c.gets(notSent, "GET", "k")
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("dropping %v: the client waited %v", dirs, took)
		}
		for _, d := range dirs {
			link.Drop(d, false)
		}
		eventually(t, "a reply again", func() bool { return c.ask("GET", "k") == bulk("v") })
	}
}

// With every place in flight taken and an upstream that answers nothing, waiters waited for ever,
// also after the connection was gone. Three clients send more than a session may have in flight.
func TestCase14WaitersAtTheLimit(t *testing.T) {
	t.Parallel()
	for _, end := range []struct {
		name string
		end  func(*fake)
	}{
		{"closed", (*fake).vanish},
		{"silent", func(*fake) {}},
	} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			u := startFake(t)
			f := startProxy(t, u.addr, timeout(2*time.Second))
			const clients, commands = 3, 6000
			done := make(chan error, clients)
			for range clients {
				c := f.client()
				go func() { done <- floodAndRead(c.Client, commands) }() // ends with the replies, or with the connection
			}
			for range clients * 1000 { // of each a chunk, behind which it waits
				select {
				case <-u.requests:
				case <-time.After(patience):
					t.Fatal("the server did not get as many commands as a session may have in flight")
				}
			}
			end.end(u)
			start := time.Now()
			for range clients {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			if took := time.Since(start); took > patience {
				t.Errorf("the last waiter had its error after %v", took)
			}
		})
	}
}

// floodAndRead pipelines n commands and wants an error of ours for each.
func floodAndRead(c *redistest.Client, n int) error {
	sent := make(chan error, 1)
	go func() { sent <- c.Send(strings.Repeat(redistest.Command("GET", "k"), n)) }()
	for range n {
		reply, err := c.ReadReply()
		if err != nil {
			return errors.Join(err, <-sent)
		}
		if reply != unknownOutcome && reply != notSent {
			return errors.New("not an error of the proxy: " + reply)
		}
	}
	return errors.Join(<-sent, nil)
}

// A general deadline killed waits that were legal: a BLPOP without timeout, a blocked read, an idle
// subscription. Each is longer than the upstream timeout here, while others are served; then data
// arrives.
func TestCase15LegalWaits(t *testing.T) {
	t.Parallel()
	const T = 200 * time.Millisecond
	s := redistest.Start(t)
	f := startProxy(t, s.Addr(), timeout(T))
	s.Do("XGROUP", "CREATE", "gs", "g", "$", "MKSTREAM")
	pop, read, group, sub, neighbour := f.client(), f.client(), f.client(), f.client(), f.client()
	pop.sends(redistest.Command("BLPOP", "k", "0"))
	read.sends(redistest.Command("XREAD", "BLOCK", "0", "STREAMS", "s", "$"))
	group.sends(redistest.Command("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "gs", ">"))
	sub.gets("*3\r\n"+bulk("subscribe")+bulk("ch")+":1\r\n", "SUBSCRIBE", "ch")
	blockedClients(t, &client{s.Client(), t}, "3")
	for tick := time.NewTicker(T / 8); ; <-tick.C { // the neighbour's traffic keeps nothing alive
		neighbour.gets("+PONG\r\n", "PING")
		if strings.Contains(s.Do("CLIENT", "LIST"), " idle=1 ") {
			tick.Stop()
			break
		}
	}
	s.Do("RPUSH", "k", "v")
	s.Do("XADD", "s", "1-1", "f", "v")
	s.Do("XADD", "gs", "1-1", "f", "v")
	s.Do("PUBLISH", "ch", "m")
	entry := "*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
	pop.replies("*2\r\n" + bulk("k") + bulk("v"))
	read.replies("*1\r\n*2\r\n" + bulk("s") + entry)
	group.replies("*1\r\n*2\r\n" + bulk("gs") + entry)
	sub.replies("*3\r\n" + bulk("message") + bulk("ch") + bulk("m"))
}

// A server that is stopped under blocked commands. Clients that leave meanwhile do not keep their
// places: without an answer their commands cannot be called back. Those that stay learn that a pop's
// outcome is unknown, and a read goes on when the server does.
func TestSilentServerKeepsNoPlaces(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr(), timeout(500*time.Millisecond))
	s.Do("XGROUP", "CREATE", "gs", "g", "$", "MKSTREAM")
	s.Do("XADD", "s", "1-1", "f", "v")
	pop, read := f.client(), f.client()
	pop.Timeout, read.Timeout = time.Minute, time.Minute
	pop.sends(redistest.Command("BLPOP", "k", "0"))
	read.sends(redistest.Command("XREAD", "BLOCK", "0", "STREAMS", "s", "1-1"))
	var leave []*client
	for _, cmd := range [][]string{
		{"BLPOP", "k", "0"}, {"XREAD", "BLOCK", "0", "STREAMS", "s", "$"},
		{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "gs", ">"}, {"WAIT", "1", "0"},
	} {
		c := f.client()
		c.sends(redistest.Command(cmd...))
		leave = append(leave, c)
	}
	blockedClients(t, &client{s.Client(), t}, "6")
	s.Stop()
	for _, c := range leave {
		reset(c.Conn)
	}
	pop.replies(unknownOutcome)
	within(t, time.Minute, "only those that stayed have a place", func() bool { return f.Stats().Clients == 2 })
	s.Cont()
	s.Do("XADD", "s", "2-1", "f", "v")
	read.replies("*1\r\n*2\r\n" + bulk("s") + "*1\r\n*2\r\n$3\r\n2-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n")
}

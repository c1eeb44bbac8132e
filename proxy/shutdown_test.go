package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// shut starts a shutdown and returns its outcome and how long it took.
func (p *testProxy) shut(ctx context.Context) (clean bool, took time.Duration) {
	start := time.Now()
	clean = p.Shutdown(ctx)
	return clean, time.Since(start)
}

// Who is idle is dismissed in an orderly way, who is parked gets the nil of its
// timeout, and both see the end behind it. Nothing is left open.
func TestShutdownOfTheQuiet(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	idle, parked, deaf := p.client(), p.client(), p.client()
	expect(t, idle, bulkReply("a"), "GET", "a")
	parked.SendCommand("BLPOP", "k", "0")
	f.await(t, "BLPOP", 1)
	expect(t, deaf, bulkReply("b"), "GET", "b")
	deaf.Conn.(*net.TCPConn).CloseRead()
	ended := make(chan struct{})
	go func() { // clients that close when they are told
		defer close(ended)
		if got, err := parked.ReadReply(); err != nil || got != "*-1\r\n" {
			t.Errorf("the parked client got %q, %v", got, err)
		}
		expectEnd(t, parked)
		expectEnd(t, idle)
		for _, c := range []*redistest.Client{parked, idle, deaf} {
			c.Close()
		}
	}()
	clean, took := p.shut(t.Context())
	<-ended
	if !clean || took > dismissTime {
		t.Errorf("clean %v after %v", clean, took)
	}
	if _, err := net.Dial("tcp", p.addr); err == nil {
		t.Error("the listener is open")
	}
	f.wait(t, "upstream connections to end", func() bool { return len(f.conns) == 0 })
}

// Commands in flight are answered first, and new clients are served meanwhile.
func TestShutdownServesTheBusy(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.DrainIdle = 200 * time.Millisecond })
	slow := make(chan *fakeConn, 1)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] == "GET" && args[1] == "slow" {
			slow <- c
		}
		return "", args[0] == "GET" // the test answers, in order
	})
	busy := p.client()
	busy.SendCommand("GET", "slow")
	conn := <-slow
	outcome := make(chan bool, 1)
	go func() { outcome <- p.Shutdown(t.Context()) }()
	until(t, "the drain to begin", p.draining.Load)
	late := p.client()
	late.SendCommand("GET", "behind")
	f.await(t, "GET behind", 1)
	select {
	case <-outcome:
		t.Fatal("over with commands in flight")
	default:
	}
	f.mu.Lock()
	io.WriteString(conn, bulkReply("slow")+bulkReply("behind"))
	f.mu.Unlock()
	for want, c := range map[string]*redistest.Client{bulkReply("slow"): busy, bulkReply("behind"): late} {
		if got, err := c.ReadReply(); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
		expectEnd(t, c)
		c.Close()
	}
	if !<-outcome {
		t.Error("not clean")
	}
}

// DrainMin keeps the proxy open for clients that have yet to come.
func TestShutdownWaitsTheMinimum(t *testing.T) {
	const least = 150 * time.Millisecond
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.DrainMin = least })
	if clean, took := p.shut(t.Context()); !clean || took < least {
		t.Errorf("clean %v after %v", clean, took)
	}
}

// A server that hangs, in a script without end or otherwise, holds up the end no
// longer than is stated, whatever was under way.
func TestShutdownOfAHungUpstream(t *testing.T) {
	for name, begin := range map[string]func(p *testProxy, f *fakeServer){
		"nothing in flight": func(*testProxy, *fakeServer) {},
		"a command": func(p *testProxy, f *fakeServer) {
			p.client().SendCommand("GET", "a")
			p.awaitInFlight(1)
		},
		"a parked read": func(p *testProxy, f *fakeServer) {
			p.client().SendCommand("BLPOP", "k", "0")
			p.awaitInFlight(1)
		},
		"a parked read whose client is gone": func(p *testProxy, f *fakeServer) {
			c := p.client()
			c.SendCommand("BLPOP", "k", "0")
			p.awaitInFlight(1)
			s := p.sessionOf(p.t, c)
			c.Close()
			until(p.t, "the client to leave", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.active.farewell })
		},
		"a client that waits for a lane": func(p *testProxy, f *fakeServer) {
			p.client().SendCommand("SELECT", "3")
		},
		"a client that waits for a private connection": func(p *testProxy, f *fakeServer) {
			f.cut("private")
			p.client().SendCommand("FOO.BAR", "x")
		},
		"a pinned client": func(p *testProxy, f *fakeServer) {
			p.client().SendCommand("MONITOR")
		},
		"a transaction": func(p *testProxy, f *fakeServer) {
			p.client().Send(redistest.Command("MULTI"))
			p.awaitInFlight(1)
		},
		"a large command": func(p *testProxy, f *fakeServer) {
			p.client().Send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n" + strings.Repeat("x", 70000))
			p.awaitInFlight(1)
		},
		"somebody to be proven": func(p *testProxy, f *fakeServer) {
			p.client().SendCommand("AUTH", "someone", "secret")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			p := startProxy(t, f, func(c *Config) { c.DrainTimeout = 300 * time.Millisecond })
			p.t = t
			expect(t, p.client(), bulkReply("a"), "GET", "a")
			until(t, "spares", func() bool { return p.Stats().PrivateIdle == 2 })
			f.setMute(true)
			begin(p, f)
			_, took := p.shut(t.Context())
			// The drain's time, a second for who is dismissed, one for the control plane's
			// library to give up, and as much again for a busy machine. Without care it would
			// be the dial's five seconds on top.
			if limit := 300*time.Millisecond + leastDismissTime + 4*time.Second; took > limit {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A client that takes nothing of a large reply holds up the lane that brings it, and not
// the end, which waits for that lane.
func TestShutdownOfTheUnread(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.DrainTimeout = 10 * time.Millisecond })
	large := bulkReply(strings.Repeat("x", 12<<20))
	f.script(func(_ *fakeConn, args []string) (string, bool) { return large, args[0] == "GET" })
	c := p.client()
	for range 3 {
		c.SendCommand("GET", "large")
	}
	s := p.sessionOf(t, c)
	until(t, "the lane to wait for the client", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.waiters > 0 && s.outstanding > 0
	})
	outcome := make(chan bool, 1)
	go func() { outcome <- p.Shutdown(t.Context()) }()
	select {
	case clean := <-outcome:
		if clean {
			t.Error("unanswered commands count as clean")
		}
	case <-time.After(patience):
		s.abort()
		t.Fatal("the drain does not end")
	}
}

// What waits for a server that is away was not sent. Its client is told so, whatever the
// command and however short the end, and the drain was not clean.
func TestShutdownAnswersWhatWaitsForAServer(t *testing.T) {
	for _, command := range []string{"GET a", "FOO.BAR x", "SELECT 3", "BLPOP k 0", "CLIENT UNBLOCK 7"} {
		for _, now := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, now %v", command, now), func(t *testing.T) {
				t.Parallel()
				f := startFake(t)
				p := startProxy(t, f, func(c *Config) { c.UpstreamWait, c.DrainTimeout = time.Hour, 200*time.Millisecond })
				f.leave(t, p)
				c := p.client()
				c.SendCommand(strings.Fields(command)...)
				until(t, "the command to be read", p.sessionOf(t, c).working.Load)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if now {
					cancel()
				}
				if p.Shutdown(ctx) {
					t.Error("a command that was not carried out counts as clean")
				}
				if got, err := c.ReadReply(); err != nil || got != string(replyStopping) {
					t.Errorf("got %q, %v", got, err)
				}
				expectEnd(t, c)
			})
		}
	}
}

// awaitInFlight waits until the server owes n replies.
func (p *testProxy) awaitInFlight(n int) {
	p.t.Helper()
	until(p.t, "commands in flight", func() bool { return p.Stats().InFlight >= n })
}

// The end of the context, a second signal, means now, at every stage.
func TestShutdownNow(t *testing.T) {
	for _, parked := range []bool{false, true} {
		f := startFake(t)
		p := startProxy(t, f, nil)
		c := p.client()
		expect(t, c, bulkReply("a"), "GET", "a")
		until(t, "spares", func() bool { return p.Stats().PrivateIdle == 2 })
		f.setMute(true)
		if parked { // quiet, so that the dismissal is what is waited for
			c.SendCommand("BLPOP", "k", "0")
		} else {
			c.SendCommand("GET", "b")
		}
		p.awaitInFlight(1)
		ctx, now := context.WithCancel(t.Context())
		outcome := make(chan bool, 1)
		go func() { outcome <- p.Shutdown(ctx) }()
		until(t, "the drain to begin", p.draining.Load)
		if parked {
			until(t, "the dismissal", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.deaf })
		}
		start := time.Now()
		now()
		if <-outcome {
			t.Errorf("parked %v: an unanswered command counts as clean", parked)
		}
		if took := time.Since(start); took > 2500*time.Millisecond {
			t.Errorf("parked %v: now took %v", parked, took)
		}
	}
}

// Close is Close, whoever else closes or is just being accepted.
func TestCloseUnderLoad(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	stop := make(chan struct{})
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := redistest.Dial(p.addr)
				if err != nil {
					continue
				}
				c.Timeout = patience
				c.Do("GET", "a")
				c.SendCommand("BLPOP", "k", "0")
				c.SendCommand("SELECT", "2")
				c.Close()
			}
		}()
	}
	f.await(t, "GET", 50)
	closed := make(chan struct{})
	go func() { p.Close(); close(closed) }()
	p.Close()
	<-closed
	close(stop)
	for range 4 {
		<-done
	}
	if n := p.sessions.len(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	p.conns.Range(func(any, any) bool { t.Error("an upstream connection is left"); return false })
}

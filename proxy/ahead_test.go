package proxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// much is more than a client's kernel and ours take of what is not read.
const much = 12 << 20

// A client that leaves a command that blocks is gone, however much it has sent behind that
// command: its end may stand behind more than the kernels hold.
func TestEndBehindMuch(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	for name, behind := range map[string]string{
		"many commands":    strings.Repeat(redistest.Command("GET", "k"), much/20),
		"a part of one":    "*2\r\n$4\r\nECHO\r\n$100000000\r\n" + strings.Repeat("x", much),
		"little and large": redistest.Command("FOO.BAR") + redistest.Command("SET", "k", strings.Repeat("x", much)),
	} {
		t.Run(name, func(t *testing.T) {
			calls := f.count("CLIENT UNBLOCK")
			c := p.client()
			if err := c.Send(redistest.Command("BLPOP", "k", "0") + behind); err != nil {
				t.Fatal(err)
			}
			c.Close()
			f.await(t, "CLIENT UNBLOCK", calls+1)
			until(t, "the session to end", func() bool { return p.sessions.len() == 0 })
			until(t, "the connection to be given back", func() bool { return p.Stats().PrivateBusy == 0 })
			if n := p.buffered.Load() + p.inHand.Load(); n != 0 {
				t.Errorf("%d bytes are still counted", n)
			}
		})
	}
	if n := f.count("GET") + f.count("FOO.BAR") + f.count("SET"); n != 0 {
		t.Errorf("%d commands of clients that had left were executed", n)
	}
}

// What is read while a command blocks is executed behind it, in order, through whatever
// connections it needs, also by a client that has ended its sending direction since.
func TestMuchIsExecuted(t *testing.T) {
	for _, halfClosed := range []bool{false, true} {
		t.Run(fmt.Sprint(halfClosed), func(t *testing.T) {
			f := startFake(t)
			p := startProxy(t, f, nil)
			f.script(func(_ *fakeConn, args []string) (string, bool) {
				return bulkReply(args[len(args)-1]), args[0] == "FOO.BAR"
			})
			const n = 40000
			var all strings.Builder
			all.WriteString(redistest.Command("BLPOP", "k", "0"))
			for i := range n {
				name := "GET"
				if i%2000 == 0 {
					name = "FOO.BAR"
				}
				all.WriteString(redistest.Command(name, fmt.Sprint(i)))
			}
			c := p.client()
			s := p.only(t)
			if err := c.Send(all.String()); err != nil {
				t.Fatal(err)
			}
			until(t, "all to be read", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.holds > 2*moreInput && !s.pending() })
			blocked := f.blockedConn(t)
			io.WriteString(blocked, "*-1\r\n")
			if got, err := c.ReadReply(); err != nil || got != "*-1\r\n" {
				t.Fatalf("got %q, %v", got, err)
			}
			if halfClosed {
				if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			for i := range n {
				if got, err := c.ReadReply(); err != nil || got != bulkReply(fmt.Sprint(i)) {
					t.Fatalf("reply %d: %q, %v", i, got, err)
				}
			}
			if halfClosed {
				expectEnd(t, c)
				return
			}
			expect(t, c, bulkReply("end"), "GET", "end")
			if left := p.buffered.Load(); left != 0 {
				t.Errorf("%d bytes are still counted", left)
			}
		})
	}
}

// blockedConn is the connection on which a command blocks; it does not any more.
func (f *fakeServer) blockedConn(t *testing.T) (blocked *fakeConn) {
	t.Helper()
	f.wait(t, "a command to block", func() bool {
		for _, c := range f.conns {
			if c.blocked {
				blocked = c
			}
		}
		return blocked != nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	blocked.blocked = false
	return blocked
}

// No client has more kept than its share, and what stays in its socket is executed as well.
func TestAheadIsBounded(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"by what it may owe": func(c *Config) { c.ClientBufferLimit = 4 << 20 },
		"by memory":          func(c *Config) { c.MemoryLimit = 16 << 20 },
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			p := startProxy(t, f, change)
			c := p.client()
			s := p.only(t)
			one := redistest.Command("ECHO", strings.Repeat("x", 1000))
			sent := make(chan error, 1)
			go func() { sent <- c.Send(redistest.Command("BLPOP", "k", "0") + strings.Repeat(one, much/len(one))) }()
			f.await(t, "BLPOP", 1)
			holds := func() int64 { s.mu.Lock(); defer s.mu.Unlock(); return s.holds }
			until(t, "its share to be kept", func() bool { return holds() >= 4<<20 })
			expect(t, p.client(), bulkReply("a"), "GET", "a")
			if n := holds(); n > 4<<20+2*moreInput {
				t.Errorf("%d bytes are kept", n)
			}
			io.WriteString(f.blockedConn(t), "*-1\r\n")
			if got, err := c.ReadReply(); err != nil || got != "*-1\r\n" {
				t.Fatalf("got %q, %v", got, err)
			}
			for i := range much / len(one) {
				if got, err := c.ReadReply(); err != nil || got != bulkReply(strings.Repeat("x", 1000)) {
					t.Fatalf("reply %d: %.50q, %v", i, got, err)
				}
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Behind a command that may block nothing more is read before it has lasted, nor while the client owes
// reading: a command that finds what it wants is over at once, and there may be thousands.
func TestAheadWaits(t *testing.T) {
	const hour = time.Hour
	for name, state := range map[string]struct {
		since time.Duration
		owes  int
	}{
		"for a command that is young": {since: hour},
		"for a client that owes":      {since: -hour, owes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			p := startProxy(t, f, nil)
			c := p.client()
			s := p.only(t)
			if err := c.Send(redistest.Command("BLPOP", "k", "0")); err != nil {
				t.Fatal(err)
			}
			f.await(t, "BLPOP", 1)
			set := func(since time.Duration, owes int) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.since, s.inWrite = time.Now().Add(since), owes
			}
			set(state.since, state.owes)
			sent := make(chan error, 1)
			go func() { sent <- c.Send(strings.Repeat(redistest.Command("GET", "k"), much/20)) }()
			waits := func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.alarm != nil }
			until(t, "the reader to wait", waits)
			holds := func() int64 { s.mu.Lock(); defer s.mu.Unlock(); return s.holds }
			if n := holds(); n > 2*moreInput {
				t.Errorf("%d bytes are kept", n)
			}
			set(-hour, 0)
			s.lookAgain(0)
			until(t, "more to be kept", func() bool { return holds() > 2*moreInput })
			c.Close()
			<-sent // an error, if it was cut off
			f.await(t, "CLIENT UNBLOCK", 1)
		})
	}
}

// While memory is short clients behind whose commands much stands wait in line, and each is found
// out when there is room for it.
func TestAheadInTurn(t *testing.T) {
	f := startFake(t)
	const limit, most = 64 << 20, 3
	p := startProxy(t, f, func(c *Config) { c.MemoryLimit = limit })
	p.buffered.Add(limit - limit/16)
	for i := range most {
		c := p.client()
		sent := make(chan error, 1)
		go func() {
			sent <- c.Send(redistest.Command("BLPOP", "k", "0") + strings.Repeat(redistest.Command("GET", "k"), much/40))
		}()
		f.await(t, "BLPOP", i+1)
		until(t, "it to stand in line", func() bool { return p.porch.waiting.Load() == int64(i+1) })
		c.Close()
		<-sent // an error, if it was cut off
	}
	if n := f.count("CLIENT UNBLOCK"); n != 0 {
		t.Fatalf("%d were called back", n)
	}
	p.buffered.Add(-limit / 4) // and still more than half of it is in use
	p.makeRoom()
	f.await(t, "CLIENT UNBLOCK", most)
	until(t, "the sessions to end", func() bool { return p.sessions.len() == 0 })
	if n := p.porch.waiting.Load(); n != 0 {
		t.Errorf("%d stand in line", n)
	}
}

// Who stands in line and is not to read on any more does not keep the others from it.
func TestAheadStepsAside(t *testing.T) {
	f := startFake(t)
	const limit = 64 << 20
	p := startProxy(t, f, func(c *Config) { c.MemoryLimit = limit })
	p.buffered.Add(limit - limit/16)
	asked := make(chan *fakeConn, 1)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] == "FOO.BAR" {
			asked <- c
		}
		return "", args[0] == "FOO.BAR"
	})
	first := p.client()
	all := redistest.Command("BLPOP", "k", "0") + redistest.Command("FOO.BAR") + strings.Repeat(redistest.Command("GET", "k"), much/20)
	go first.Send(all) // it is cut off at the end of the test
	until(t, "the first to stand in line", func() bool { return p.porch.waiting.Load() == 1 })
	blocked := f.blockedConn(t)
	second := p.client()
	sent := make(chan error, 1)
	go func() { sent <- second.Send(redistest.Command("BLPOP", "k", "0") + strings.Repeat("x", much/2)) }()
	until(t, "the second to stand in line", func() bool { return p.porch.waiting.Load() == 2 })
	second.Close()
	<-sent
	io.WriteString(blocked, "*-1\r\n")
	conn := <-asked // the first is at a command that will end
	p.buffered.Add(-limit / 4)
	p.makeRoom()
	f.await(t, "CLIENT UNBLOCK", 1)
	until(t, "the second to end", func() bool { return p.sessions.len() == 1 })
	io.WriteString(conn, "+OK\r\n")
}

package proxy

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// A client that hangs up under a blocking command is gone: the command is called back
// and its connection is used again.
func TestHangUpUnderBlocking(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	for round := range 3 {
		c := p.client()
		if err := c.SendCommand("BLPOP", "k", "0"); err != nil {
			t.Fatal(err)
		}
		f.await(t, "BLPOP", round+1)
		c.Close()
		f.await(t, "CLIENT UNBLOCK", round+1)
		until(t, "the session to end", func() bool { return p.sessions.len() == 0 })
	}
	until(t, "the connection to be given back", func() bool { return p.Stats().PrivateBusy == 0 })
}

// Commands held behind a private one are executed although the client has ended its
// sending direction meanwhile, as with a pipeline from a shell.
func TestHeldCommandsAfterHalfClose(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	until(t, "spares", func() bool { return p.Stats().PrivateIdle == 2 })
	asked := make(chan *fakeConn, 2)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] == "FOO.BAR" { // not known to the proxy: a private connection
			asked <- c
		}
		return "", args[0] == "FOO.BAR"
	})
	c := p.client()
	pipeline := redistest.Command("GET", "a") + redistest.Command("FOO.BAR", "x") + redistest.Command("GET", "b") +
		redistest.Command("FOO.BAR", "x") + redistest.Command("GET", "c")
	if err := c.Send(pipeline); err != nil {
		t.Fatal(err)
	}
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s := p.only(t)
	for range 2 { // answered only when the reader has met the end and waits
		var conn *fakeConn
		select {
		case conn = <-asked:
		case <-time.After(patience):
			t.Fatal("a held command was not executed")
		}
		until(t, "the end to be met", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.waiters > 0 })
		io.WriteString(conn, "-ERR no\r\n")
	}
	for _, want := range []string{bulkReply("a"), "-ERR no", bulkReply("b"), "-ERR no", bulkReply("c")} {
		if got, err := c.ReadReply(); err != nil || !strings.HasPrefix(got, want) {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	expectEnd(t, c)
}

// A pipeline of any length is carried out to its end although the client has ended its sending
// direction meanwhile, also where more of it is held than is read ahead.
func TestLongPipelineAfterHalfClose(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	asked := make(chan *fakeConn, 1)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] == "FOO.BAR" {
			asked <- c
		}
		return "", args[0] == "FOO.BAR"
	})
	c := p.client()
	s := p.only(t)
	const n = 18000
	pipeline := redistest.Command("FOO.BAR", "x") + strings.Repeat(redistest.Command("GET", "k"), n)
	if len(pipeline) < moreInput+chunkSize {
		t.Fatalf("%d bytes are all read ahead", len(pipeline))
	}
	if err := c.Send(pipeline); err != nil {
		t.Fatal(err)
	}
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	conn := <-asked
	until(t, "the end to be known", func() bool { return s.left.Load() })
	until(t, "the reader to have seen it", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.suspended })
	io.WriteString(conn, "-ERR no\r\n")
	if got, err := c.ReadReply(); err != nil || got != "-ERR no\r\n" {
		t.Fatalf("got %q, %v", got, err)
	}
	for i := range n {
		if got, err := c.ReadReply(); err != nil || got != bulkReply("k") {
			t.Fatalf("reply %d: %q, %v", i, got, err)
		}
	}
	expectEnd(t, c)
}

// Clients that send and close in one breath leave nothing behind, even where the
// poller told of both at once.
func TestSendAndClose(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	for range 300 {
		c := p.client()
		if err := c.Send(redistest.Command("GET", "a")); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	until(t, "all sessions to end", func() bool { return p.sessions.len() == 0 })
}

// The same for a half-close: the reply comes, then the end.
func TestSendAndHalfClose(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	for range 50 {
		c := p.client()
		if err := c.Send(redistest.Command("GET", "a")); err != nil {
			t.Fatal(err)
		}
		c.Conn.(*net.TCPConn).CloseWrite()
		got, err := io.ReadAll(c.Conn)
		if err != nil || string(got) != bulkReply("a") {
			t.Fatalf("got %q, %v", got, err)
		}
		c.Close()
	}
}

// A session that is cut off while there is something left to read ends all the same.
func TestCutOffWithBytesLeft(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	for _, before := range []bool{true, false} {
		s, client := bare(t, p)
		io.WriteString(client, redistest.Command("GET", "never"))
		read := make(chan struct{})
		if before {
			s.abort()
			go func() { defer close(read); s.intake() }()
		} else {
			s.nc.SetReadDeadline(past)
			s.mu.Lock() // the reader is woken and has not looked yet
			go func() { defer close(read); s.woken() }()
			s.seal()
			s.mu.Unlock()
			s.shutdown()
		}
		select {
		case <-read:
		case <-time.After(patience):
			t.Fatal("the reader goes on")
		}
		if !s.ending || s.readErr == nil {
			t.Error("the reader would go on")
		}
	}
	if f.count("GET never") != 0 {
		t.Error("a command of a client that was cut off ran")
	}
}

// Many private commands in one write: no wake-up is lost between them.
func TestPipelineOfPrivateCommands(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	f.script(func(_ *fakeConn, args []string) (string, bool) { return "-ERR no\r\n", args[0] == "FOO.BAR" })
	c := p.client()
	const n = 300
	if err := c.Send(strings.Repeat(redistest.Command("FOO.BAR", "x"), n) + redistest.Command("GET", "end")); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if got, err := c.ReadReply(); err != nil || !strings.HasPrefix(got, "-ERR no") {
			t.Fatalf("reply %d: %q, %v", i, got, err)
		}
	}
	if got, err := c.ReadReply(); err != nil || got != bulkReply("end") {
		t.Errorf("got %q, %v", got, err)
	}
}

// Every command cut at every byte, with pauses that let each part arrive alone.
func TestSplitAnywhere(t *testing.T) {
	f := startFake(t)
	var received atomic.Int64
	p := startProxy(t, f, func(c *Config) { c.Events.Received = func(n int) { received.Add(int64(n)) } })
	raw := redistest.Command("SET", "a", "") + redistest.Command("GET", "") + "get b\r\n"
	want := bulkReply("a") + bulkReply("") + bulkReply("b")
	for cut := 1; cut < len(raw); cut++ {
		c := p.client()
		received.Store(0)
		c.Send(raw[:cut])
		until(t, "the first part", func() bool { return received.Load() >= int64(cut) })
		c.Send(raw[cut:])
		got := make([]byte, len(want))
		c.Conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.ReadFull(c.Conn, got); err != nil || string(got) != want {
			t.Fatalf("cut at %d: got %q, %v", cut, got, err)
		}
		c.Close()
		until(t, "the session to end", func() bool { return p.sessions.len() == 0 })
	}
}

// only returns the one session there is.
func (p *testProxy) only(t *testing.T) (s *session) {
	t.Helper()
	until(t, "one session", func() bool {
		all := p.sessions.all()
		if len(all) == 1 {
			s = all[0]
		}
		return len(all) == 1
	})
	return s
}

// A client that says nothing for its idle time is closed, not before, and not while it
// waits for a blocking command.
func TestIdleTimeout(t *testing.T) {
	f := startFake(t)
	const idle = 60 * time.Millisecond
	p := startProxy(t, f, func(c *Config) { c.ClientIdleTimeout = idle })
	parked := p.client()
	parked.SendCommand("BLPOP", "k", "0")
	f.await(t, "BLPOP", 1)
	c := p.client()
	start := time.Now()
	expect(t, c, bulkReply("a"), "GET", "a")
	expectEnd(t, c)
	if took := time.Since(start); took < idle {
		t.Errorf("closed after %v", took)
	}
	until(t, "the session to end", func() bool { return p.sessions.len() == 1 })
	s := p.sessionOf(t, parked)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		t.Error("the parked client was closed too")
	}
}

// A client that writes and does not read is not read from beyond its limits, whatever
// answers it: the server, the proxy itself, or a refusal.
func TestPushBack(t *testing.T) {
	for name, command := range map[string][]string{
		"from the lane":  {"GET", strings.Repeat("x", 1000)},
		"answered here":  {"CLIENT", "ID"},
		"a long answer":  {"PROXY", "CLIENTS"},
		"not authorised": {"GET", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			const limit = 100 << 10
			p := startProxy(t, f, func(c *Config) {
				c.ClientBufferLimit = limit
				if name == "not authorised" {
					c.RequirePass = func() (string, error) { return "secret", nil }
				}
			})
			c := p.client()
			c.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
			s := p.only(t)
			s.nc.(*net.TCPConn).SetWriteBuffer(4 << 10)
			raw := strings.Repeat(redistest.Command(command...), 100)
			sent := make(chan int, 1)
			go func() {
				n := 0
				c.Conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
				for {
					if _, err := io.WriteString(c.Conn, raw); err != nil {
						break
					}
					n++
				}
				sent <- n
			}()
			unsent := func() int64 { s.mu.Lock(); defer s.mu.Unlock(); return s.unsent() }
			until(t, "the limit", func() bool { return unsent() > limit })
			<-sent
			// What is in flight when the limit is reached comes on top: a chunk's worth.
			if got := unsent(); got > limit+4<<20 {
				t.Errorf("%d bytes are held for a client that reads nothing", got)
			}
		})
	}
}

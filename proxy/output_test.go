package proxy

import (
	"strings"
	"testing"
	"time"

	"streamproxy/batcher"
)

// A client that is slow gets everything in order from a writer of its own, while the
// sources of its replies never wait.
func TestSlowClient(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	const n, size = 40, 100 << 10
	g := book(s, &segment{}, n)
	var want strings.Builder
	for i := range n {
		reply := bulkReply(strings.Repeat(string(rune('a'+i%26)), size))
		want.WriteString(reply)
		g.Reply([]byte(reply), 1, 0)
		g.Flush()
	}
	s.mu.Lock()
	unsent, charged := s.unsent(), s.charged
	s.mu.Unlock()
	if unsent < n*size/2 {
		t.Errorf("only %d bytes wait for a client that has taken nothing", unsent)
	}
	if charged == 0 || p.buffered.Load() != charged {
		t.Errorf("%d bytes are charged, the proxy counts %d", charged, p.buffered.Load())
	}
	if got := received(t, client, want.Len()); got != want.String() {
		t.Error("the bytes are not those that were sent")
	}
	until(t, "the writer to end", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return !s.writing })
	if s.unsent() != 0 || p.buffered.Load() != 0 {
		t.Errorf("%d bytes unsent, %d charged", s.unsent(), p.buffered.Load())
	}
}

// Pace lets go as soon as the client has come down to the limit.
func TestPace(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	if !s.pace(0, 0) {
		t.Error("a client that owes nothing is held up")
	}
	g := book(s, &segment{}, 1)
	g.Reply([]byte(bulkReply(strings.Repeat("x", 2<<20))), 1, 0)
	g.Flush()
	paced := make(chan bool, 1)
	go func() { paced <- s.pace(64<<10, patience) }()
	until(t, "somebody to wait", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.waiters == 1 })
	select {
	case <-paced:
		t.Fatal("let go too early")
	default:
	}
	received(t, client, 2<<20)
	if !<-paced {
		t.Error("a client that reads was closed")
	}
}

// A client that takes nothing for the stall time is closed; one that takes a little is
// not.
func TestPaceStall(t *testing.T) {
	const stall = 150 * time.Millisecond
	f := startFake(t)
	p := startProxy(t, f, nil)
	for _, reads := range []bool{false, true} {
		s, client := bare(t, p)
		g := book(s, &segment{}, 1)
		g.Reply([]byte(bulkReply(strings.Repeat("x", 4<<20))), 1, 0)
		g.Flush()
		start := time.Now()
		paced := make(chan bool, 1)
		go func() { paced <- s.pace(0, stall) }()
		if !reads {
			if <-paced {
				t.Error("a client that takes nothing was waited for")
			}
			if took := time.Since(start); took < stall {
				t.Errorf("closed after %v", took)
			}
			continue
		}
		tick := time.NewTicker(stall / 10)
		total := 4<<20 + 11
		for took := 0; took < total; took += min(256<<10, total-took) {
			<-tick.C
			received(t, client, min(256<<10, total-took))
		}
		tick.Stop()
		if !<-paced {
			t.Errorf("a client that reads slowly was closed after %v", time.Since(start))
		}
	}
}

// Whoever waits for a client learns of its end at once.
func TestPaceEndsWithTheClient(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	g := book(s, &segment{}, 1)
	g.Reply([]byte(bulkReply(strings.Repeat("x", 2<<20))), 1, 0)
	g.Flush()
	paced := make(chan bool, 1)
	go func() { paced <- s.pace(0, 0) }()
	until(t, "somebody to wait", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.waiters == 1 })
	client.Close()
	if <-paced {
		t.Error("the client is gone and counts as there")
	}
}

// A client over its buffer limit that reads nothing is closed after the stall time,
// and others are served meanwhile.
func TestStalledClientIsClosed(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) {
		c.ClientBufferLimit, c.ClientStallTimeout = 64<<10, 100*time.Millisecond
	})
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		if args[0] == "GET" && args[1] == "big" {
			return bulkReply(strings.Repeat("x", 512<<10)), true
		}
		return "", false
	})
	stalled, other := p.client(), p.client()
	stalled.Send(strings.Repeat("*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n", 64))
	for p.sessions.len() == 2 { // until the stalled one is gone
		expect(t, other, bulkReply("a"), "GET", "a")
		stalled.Send("*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n")
	}
	expect(t, other, bulkReply("a"), "GET", "a")

	// Nor does it matter that it sends nothing more, and nobody else waits.
	for _, pipeline := range []int{2, 64} {
		p.client().Send(strings.Repeat("*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n", 8*pipeline))
		until(t, "the client to be closed", func() bool { return p.sessions.len() == 1 })
	}
}

// A giant reply reaches a slow client whole, while the replies of others behind it do
// not wait for that client longer than is stated.
func TestGiantReplyThroughTheProxy(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	const size = 8 << 20
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		if args[0] == "GET" && args[1] == "giant" {
			return bulkReply(strings.Repeat("g", size)), true
		}
		return "", false
	})
	slow, other := p.client(), p.client()
	if err := slow.SendCommand("GET", "giant"); err != nil {
		t.Fatal(err)
	}
	f.await(t, "GET giant", 1)
	for range 20 {
		expect(t, other, bulkReply("a"), "GET", "a")
	}
	if got, err := slow.ReadReply(); err != nil || len(got) != len(bulkReply(strings.Repeat("g", size))) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	expect(t, slow, bulkReply("b"), "GET", "b")
}

// Both stall timers of a wait that makes progress are counted from the last progress.
func TestWaitProgressCountsFromTheLast(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, _ := bare(t, p)
	const stall = 100 * time.Millisecond
	const steps = 5
	waited := make(chan time.Duration, 1)
	start := time.Now()
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waitProgress(func() bool { return false }, stall) {
			t.Error("what never holds came true")
		}
		waited <- time.Since(start)
	}()
	tick := time.NewTicker(stall / 2)
	defer tick.Stop()
	for range steps {
		<-tick.C
		s.mu.Lock()
		s.progress++
		s.cond.Broadcast()
		s.mu.Unlock()
	}
	if got := <-waited; got < steps*stall/2+stall*9/10 {
		t.Errorf("gave up after %v", got)
	}
}

// A source that fails while its client is slow leaves an error behind what was sent.
func TestFailureBehindSlowClient(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	g := book(s, &segment{}, 2)
	reply := bulkReply(strings.Repeat("x", 1<<20))
	g.Reply([]byte(reply), 1, 0)
	g.Flush()
	g.Reply([]byte("$5\r\nab"), 0, 6)
	g.Flush()
	g.Fail(1, batcher.ErrUnknown)
	g.Flush()
	want := reply + string(replyUnknown)
	if got := received(t, client, len(want)); got != want {
		t.Errorf("the end is %.100q", got[len(reply):])
	}
}

// What was counted between a reply and its flush counts no more when the client has taken it.
func TestTakenIsNotCounted(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	g := book(s, &segment{}, 1)
	reply := bulkReply("a")
	g.Reply([]byte(reply), 1, 0)
	s.noteHeld(10)
	if n := p.buffered.Load(); n != int64(s.out.room+10) || s.out.room < len(reply) {
		t.Errorf("%d bytes are counted", n)
	}
	g.Flush()
	received(t, client, len(reply))
	if n := p.buffered.Load(); n != 10 {
		t.Errorf("%d bytes are counted of 10 that are held", n)
	}
}

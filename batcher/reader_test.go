package batcher

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// A push behind a reply in the same chunk is nobody's reply.
func TestPushBetweenReplies(t *testing.T) {
	const push = ">2\r\n$3\r\nfoo\r\n$3\r\nbar\r\n"
	stream := "+a\r\n" + push + push + "+b\r\n" + push
	for cut := 0; cut <= len(stream); cut++ {
		var pushes []string
		delivered := make(chan struct{}, 3)
		c, p := connect(t, Options{Pushed: func(frame []byte) {
			pushes = append(pushes, string(frame))
			delivered <- struct{}{}
		}})
		r := newRecorder()
		submit(t, c, r, "a", "b")
		p.take(2)
		p.send(stream[:cut])
		p.send(stream[cut:])
		r.expect(t, 2, "+a\r\n+b\r\n")
		for range 3 {
			select {
			case <-delivered:
			case <-c.Done():
				t.Fatalf("cut at %d: the connection died", cut)
			}
		}
		for _, f := range pushes {
			if f != push {
				t.Errorf("cut at %d: delivered %q", cut, f)
			}
		}
		c.Close()
	}
}

// A server that answers and closes at once may do both before the poller looks. The
// end must be noticed all the same, for somebody may be waiting for more.
func TestEndBehindAReply(t *testing.T) {
	for range 300 {
		c, p := connect(t, Options{})
		r := newRecorder()
		submit(t, c, r, "a", "b")
		p.take(2)
		p.send("+a\r\n")
		p.nc.Close()
		r.expect(t, 2, "+a\r\n?")
	}
}

// A chunk may end anywhere: replies arrive whole and in order, and the sink always
// knows how much of an incomplete one it has.
func TestReplySplitAnywhere(t *testing.T) {
	parts := []string{"+a\r\n", "$3\r\nb\r\n\r\n", "*2\r\n:1\r\n$-1\r\n", "-ERR d\r\n"}
	stream := strings.Join(parts, "")
	for cut := 1; cut < len(stream); cut++ {
		c, p := connect(t, Options{})
		x, y := newRecorder(), newRecorder()
		submit(t, c, x, "a", "b")
		submit(t, c, y, "c", "d")
		p.take(4)
		p.send(stream[:cut])
		wantOpen := cut
		for _, part := range parts {
			if wantOpen < len(part) {
				break
			}
			wantOpen -= len(part)
		}
		both := func() int { return len(x.text()) + len(y.text()) }
		until(t, "the first part", func() bool { return both() == cut })
		until(t, "what is open", func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			y.mu.Lock()
			defer y.mu.Unlock()
			return x.open+y.open == wantOpen
		})
		p.send(stream[cut:])
		x.expect(t, 2, parts[0]+parts[1])
		y.expect(t, 2, parts[2]+parts[3])
		c.Close()
	}
}

// A reply beyond what was written, or one that does not parse, ends the connection.
// Nobody gets it, and who waits learns that the outcome is unknown.
func TestProtocolDeath(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		asked        []string
		want         string
	}{
		{"nobody asked", "+x\r\n", nil, ""},
		{"one too many", "+a\r\n+b\r\n+c\r\n", []string{"a", "b"}, "+a\r\n+b\r\n"},
		{"not RESP", "hello\r\n", []string{"a"}, "?"},
		// What came in one piece with garbage is not trusted.
		{"behind a reply", "+a\r\nhello\r\n", []string{"a", "b"}, "??"},
		{"a bad length", "$1x\r\n", []string{"a", "b"}, "??"},
		{"a push that does not parse", ">x\r\n", []string{"a"}, "?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			failed := make(chan string, 1)
			c, p := connect(t, Options{Events: &Events{Failed: func(reason string) { failed <- reason }}})
			r := newRecorder()
			if len(tt.asked) > 0 {
				submit(t, c, r, tt.asked...)
				p.take(len(tt.asked))
			}
			p.send(tt.stream)
			await(t, c.Done(), "death")
			r.expect(t, len(tt.asked), tt.want)
			if reason := <-failed; reason != "protocol" {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
}

// A reply to a command that stands in the queue but was never handed to the socket is
// a violation too: ownership is not guessed.
func TestReplyBeforeTheWrite(t *testing.T) {
	c, p := connect(t, Options{})
	r := newRecorder()
	c.mu.Lock()
	c.state = flushWriting // as if a write were under way
	c.mu.Unlock()
	submit(t, c, r, "a")
	p.send("+early\r\n")
	until(t, "death", c.Dead)
	c.mu.Lock()
	c.state = flushIdle // the write has ended
	c.cond.Broadcast()
	c.mu.Unlock()
	await(t, c.Done(), "the end")
	r.expect(t, 1, "!")
}

// Without a taker pushes are dropped and counted.
func TestPushesAreDropped(t *testing.T) {
	dropped := 0
	c, p := connect(t, Options{Events: &Events{PushDropped: func() { dropped++ }}})
	r := newRecorder()
	submit(t, c, r, "a")
	p.take(1)
	p.send(">1\r\n+p\r\n>1\r\n+q\r\n+a\r\n")
	r.expect(t, 1, "+a\r\n")
	c.Close()
	await(t, c.Done(), "the end")
	if dropped != 2 {
		t.Errorf("%d pushes counted, want 2", dropped)
	}
}

// Death at each stage of a command's life: answered, answered in part, written,
// queued. The reason names how.
func TestDeathByStage(t *testing.T) {
	failed := make(chan string, 1)
	c, p := connect(t, Options{Events: &Events{Failed: func(reason string) { failed <- reason }}})
	r, other := newRecorder(), newRecorder()
	submit(t, c, r, "answered", "open")
	submit(t, c, other, "written")
	p.take(3)
	p.send("+yes\r\n$5\r\nhal")
	r.wait(t, "the beginning of the second reply", func() bool { return r.open > 0 })
	c.mu.Lock()
	c.state = flushWriting // a write is under way and takes none of what follows
	c.mu.Unlock()
	submit(t, c, r, "queued")
	submit(t, c, other, "queued", "queued")
	p.nc.Close()
	until(t, "death", c.Dead)
	c.mu.Lock()
	c.state = flushIdle
	c.cond.Broadcast()
	c.mu.Unlock()
	await(t, c.Done(), "the end")
	r.expect(t, 3, "+yes\r\n$5\r\nhal?!")
	other.expect(t, 3, "?!!")
	if reason := <-failed; reason != "eof" {
		t.Errorf("the reason is %q", reason)
	}
}

// pacer is what a sink's Pace was asked, and holds the reader until it is released.
type pacer struct {
	asked   chan time.Duration
	limit   chan int64
	release chan bool
}

func newPacer() *pacer {
	return &pacer{make(chan time.Duration, 1000), make(chan int64, 1000), make(chan bool)}
}

func (p *pacer) pace(limit int64, stall time.Duration) bool {
	p.asked <- stall
	p.limit <- limit
	return <-p.release
}

// A giant reply retires its lane as soon as it announces itself, and from then on the
// reader goes at its client's pace: strictly when nobody else waits, generously but
// with a deadline when others do.
func TestGiantReply(t *testing.T) {
	for _, others := range []bool{false, true} {
		emptied := make(chan struct{}, 1)
		c, p := connect(t, Options{Shared: true, Policy: DefaultPolicyConfig(), Emptied: func(*Conn) { emptied <- struct{}{} }})
		pc := newPacer()
		r, other := newRecorder(), newRecorder()
		r.pace = pc.pace
		submit(t, c, r, "big")
		p.take(1)
		if others {
			submit(t, c, other, "small")
			p.take(1)
		}
		const size = 3 << 20
		head := fmt.Sprintf("$%d\r\n", size)
		p.send(head + "x")
		wantStall, wantLimit := time.Duration(0), int64(giantReply)
		if others {
			wantStall, wantLimit = giantStall, giantBuffered
		}
		if stall, limit := <-pc.asked, <-pc.limit; stall != wantStall || limit != wantLimit {
			t.Errorf("others %v: paced with %d bytes, %v", others, limit, stall)
		}
		if !c.Retired() {
			t.Error("the lane is not retired")
		}
		if c.Overdue() || !c.pacing.Load() {
			t.Error("the time in which we do not read counts against the server")
		}
		close(pc.release)
		go io.WriteString(p.nc, strings.Repeat("x", size-1)+"\r\n"+"+small\r\n")
		r.wait(t, "the reply", func() bool { return r.ended == 1 })
		if got := len(r.text()); got != len(head)+size+2 {
			t.Errorf("%d bytes arrived", got)
		}
		if others {
			other.expect(t, 1, "+small\r\n")
			await(t, emptied, "the lane to be let go")
		}
		c.Close()
		await(t, c.Done(), "the end")
	}
}

// A large array counts by what it announces, and a private connection is paced too
// but not retired.
func TestGiantAnnouncedByCount(t *testing.T) {
	c, p := connect(t, Options{})
	pc := newPacer()
	r := newRecorder()
	r.pace = pc.pace
	submit(t, c, r, "big")
	p.take(1)
	p.send("*400000\r\n:1\r\n")
	<-pc.asked
	if c.Retired() {
		t.Error("a private connection was retired")
	}
	close(pc.release)
	c.Close()
	await(t, c.Done(), "the end")
}

// Many replies that are giant together retire their lane when the first of them has come, and are
// taken at their client's pace from when nobody waits behind them: who is slow to take replies of
// ordinary size is not ended for it.
func TestGiantRun(t *testing.T) {
	const size, n = 100 << 10, 60
	reply := fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size))
	c, p := connect(t, Options{Shared: true, Policy: DefaultPolicyConfig()})
	r, other := newRecorder(), newRecorder()
	pc := newPacer()
	r.pace = pc.pace
	submit(t, c, r, slices.Repeat([]string{"get"}, n)...)
	p.take(n)
	submit(t, c, other, "small")
	p.take(1)
	go io.WriteString(p.nc, strings.Repeat(reply, n-1)+reply[:len(reply)-2])
	r.wait(t, "all but the last", func() bool { return r.ended == n-1 })
	if !c.Retired() || len(pc.asked) > 0 {
		t.Errorf("retired %v, paced %d times while others wait", c.Retired(), len(pc.asked))
	}
	p.send("\r\n+small\r\n")
	other.expect(t, 1, "+small\r\n")

	c, p = connect(t, Options{Shared: true, Policy: DefaultPolicyConfig()})
	submit(t, c, r, slices.Repeat([]string{"get"}, n)...)
	p.take(n)
	p.send(reply)
	if stall, limit := <-pc.asked, <-pc.limit; stall != 0 || limit != giantReply || !c.Retired() {
		t.Errorf("alone: paced with %d bytes, %v, retired %v", limit, stall, c.Retired())
	}
	close(pc.release)
}

// A reply of ordinary size is never paced.
func TestNoPaceForSmallReplies(t *testing.T) {
	c, p := connect(t, Options{Shared: true, Policy: DefaultPolicyConfig()})
	r := newRecorder()
	r.pace = func(int64, time.Duration) bool { t.Error("paced"); return true }
	submit(t, c, r, "a", "b")
	p.take(2)
	half := strings.Repeat("x", giantReply/2)
	p.send(fmt.Sprintf("$%d\r\n%s\r\n$3\r\nab", len(half), half))
	r.wait(t, "the first", func() bool { return r.ended == 1 && r.open == 6 })
	p.send("c\r\n")
	r.wait(t, "the second", func() bool { return r.ended == 2 })
	if c.Retired() {
		t.Error("retired for a reply of half a megabyte")
	}
}

// A server that answers and resets the connection: the same, and whoever closes the
// connection afterwards does not wait for an event that has been.
func TestResetBehindAReply(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range 200 {
		near, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c := NewConn(near, Options{})
		r := newRecorder()
		commands := 1 + i%2
		submit(t, c, r, make([]string, commands)...)
		far.Read(make([]byte, 1024))
		io.WriteString(far, "+a\r\n")
		far.(*net.TCPConn).SetLinger(0)
		far.Close()
		r.wait(t, "the end of all", func() bool { return r.ended == commands })
		if i%4 < 2 {
			until(t, "the end", func() bool { old(c, time.Second); c.Overdue(); return c.Dead() })
		}
		c.Close()
		await(t, c.Done(), "the end")
	}
}

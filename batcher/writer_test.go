package batcher

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// cutConn accepts so many bytes and then fails. It has no descriptor, so that the
// number is exact; what it accepted reaches the other end.
type cutConn struct {
	net.Conn
	mu   sync.Mutex
	left int
}

func (c *cutConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	n := min(len(b), c.left)
	c.left -= n
	c.mu.Unlock()
	if n > 0 {
		if m, err := c.Conn.Write(b[:n]); err != nil {
			return m, err
		}
	}
	if n < len(b) {
		return n, errors.New("cut")
	}
	return n, nil
}

// For each position at which a write can be cut, exactly the commands that lie whole
// before it are unknown, those behind it not sent, and an answered one is answered:
// over two owners, a batch that was answered in part, one cut and one still queued.
func TestCutAtEveryPosition(t *testing.T) {
	answered := get("a1", "b1")
	cut := [][]byte{get("a2"), get("a3-longer"), get("b2"), get("a4")}
	owner := "aaba"
	var batch []byte
	var ends []int
	for _, raw := range cut {
		batch = append(batch, raw...)
		ends = append(ends, len(batch))
	}
	for n := 0; n < len(batch); n++ {
		want := map[rune]string{'a': "+a1\r\n", 'b': "?"} // b1 was sent and not answered
		for i, end := range ends {
			sign := "?"
			if end > n {
				sign = "!"
			}
			want[rune(owner[i])] += sign
		}
		want['b'] += "!" // queued behind
		near, far := net.Pipe()
		c := NewConn(&cutConn{Conn: near, left: len(answered) + n}, Options{})
		a, b := newRecorder(), newRecorder()
		go func() {
			buf := make([]byte, len(answered))
			for have := 0; have < len(answered); {
				k, err := far.Read(buf[have:])
				if err != nil {
					return
				}
				have += k
			}
			far.Write([]byte("+a1\r\n"))
			drainPipe(far)
		}()
		c.mu.Lock() // as if a write were under way: what follows is one batch
		c.state = flushWriting
		c.mu.Unlock()
		submit(t, c, a, "a1")
		submit(t, c, b, "b1")
		go c.drain(nil, 0)
		a.wait(t, "the first reply", func() bool { return a.ended == 1 })
		until(t, "the first batch to end", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.state == flushIdle })
		c.mu.Lock()
		c.state = flushWriting
		c.mu.Unlock()
		for i, raw := range cut {
			s := map[byte]*recorder{'a': a, 'b': b}[owner[i]]
			if err := c.Submit(s, nil, raw, 1); err != nil {
				t.Fatal(err)
			}
		}
		part, _ := c.take()
		submit(t, c, b, "b3")
		c.drain(part, 0)
		await(t, c.Done(), "the end")
		if a.text() != want['a'] || b.text() != want['b'] {
			t.Fatalf("cut after %d of %d bytes: a %q, want %q; b %q, want %q", n, len(batch), a.text(), want['a'], b.text(), want['b'])
		}
		far.Close()
	}
}

func drainPipe(nc net.Conn) {
	buf := make([]byte, 1024)
	for {
		if _, err := nc.Read(buf); err != nil {
			return
		}
	}
}

// A write that failed is the last one: a torn command must never be continued by
// somebody else's bytes.
func TestNothingBehindATornWrite(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	go drainPipe(far)
	c := NewConn(&cutConn{Conn: near, left: 10}, Options{})
	r := newRecorder()
	submit(t, c, r, "torn")
	r.wait(t, "the failure", func() bool { return r.ended == 1 })
	if err := c.Submit(r, nil, get("next"), 1); !errors.Is(err, ErrDead) {
		t.Errorf("after a torn write: %v", err)
	}
	await(t, c.Done(), "the end")
	r.expect(t, 1, "!")
}

// A server that takes little at a time gets everything once, in order, although many
// write at once.
func TestPartialWrites(t *testing.T) {
	near, far := socketpair(t)
	near.SetWriteBuffer(4 << 10)
	far.SetReadBuffer(4 << 10)
	c := NewConn(near, Options{Shared: true, Policy: DefaultPolicyConfig()})
	defer func() { c.Close(); <-c.Done() }()
	p := &peer{t: t, nc: far, scan: newScanner()}
	go p.echo()
	var wg sync.WaitGroup
	for o := range 8 {
		wg.Go(func() {
			r := newRecorder()
			var want strings.Builder
			for i := range 10 {
				key := fmt.Sprintf("%d:%d:%s", o, i, strings.Repeat("x", 20<<10))
				want.WriteString(bulk(key))
				if err := c.Submit(r, nil, get(key), 1); err != nil {
					t.Error(err)
					return
				}
			}
			r.wait(t, "replies", func() bool { return r.ended == 10 })
			if r.text() != want.String() {
				t.Errorf("owner %d: %d bytes of replies, want %d", o, len(r.text()), want.Len())
			}
		})
	}
	wg.Wait()
}

// While the server takes nothing, no more than the bound is queued: owners wait, and
// go on when it takes something, or learn that the connection is lost.
func TestFullQueueHoldsOwners(t *testing.T) {
	for _, lost := range []bool{false, true} {
		near, far := socketpair(t)
		near.SetWriteBuffer(4 << 10)
		c := NewConn(near, Options{})
		p := &peer{t: t, nc: far, scan: newScanner()}
		r := newRecorder()
		big := strings.Repeat("x", 300<<10)
		const commands = 8
		taken := make(chan error, commands)
		go func() {
			for range commands {
				taken <- c.Submit(r, nil, get(big), 1)
			}
		}()
		until(t, "the queue to fill", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.out) > maxQueued })
		c.mu.Lock()
		queued := len(c.out)
		c.mu.Unlock()
		if queued > maxQueued+len(big)+100 {
			t.Errorf("%d bytes queued", queued)
		}
		if lost {
			far.Close()
		} else {
			go p.echo()
		}
		refused := 0
		for range commands {
			if err := <-taken; err != nil {
				refused++
			}
		}
		r.wait(t, "the end of all", func() bool { return r.ended == commands-refused })
		if lost != (refused > 0) {
			t.Errorf("lost %v: %d commands refused", lost, refused)
		}
		if lost && strings.Trim(r.text(), "?!") != "" {
			t.Errorf("got %.100q", r.text())
		}
		c.Close()
		<-c.Done()
	}
}

// lane returns a shared connection whose batches wait for d at most, with one command
// of a first owner in flight, so that the connection is not idle.
func lane(t *testing.T, d time.Duration, flushed func(FlushReason, int, int, time.Duration)) (*Conn, *peer, *recorder) {
	t.Helper()
	c, p := connect(t, Options{
		Shared: true, Events: &Events{Flushed: flushed}, RoundTrip: time.Second, // sessions count as active for 4 s
		Policy: PolicyConfig{Delay: d, MaxBytes: 1 << 20, MaxCommands: 100},
	})
	first := newRecorder()
	var seat Seat
	c.Join(&seat)
	if err := c.Submit(first, &seat, get("first"), 1); err != nil {
		t.Fatal(err)
	}
	p.take(1)
	// Company that is expected to send: two sessions that have all their replies, and a
	// rate of arrivals that promises more.
	c.mu.Lock()
	for range 2 {
		m := new(Member)
		c.activity.Sent(m, nanotime(), 1)
		c.activity.Answered(m, 1)
	}
	for range 50 {
		c.policy.Arrived(nanotime(), 1)
	}
	c.mu.Unlock()
	return c, p, first
}

type flushes struct {
	mu   sync.Mutex
	list []FlushReason
	size []int
}

func (f *flushes) note(reason FlushReason, commands, _ int, _ time.Duration) {
	f.mu.Lock()
	f.list, f.size = append(f.list, reason), append(f.size, commands)
	f.mu.Unlock()
}

func (f *flushes) last() (FlushReason, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list[len(f.list)-1], f.size[len(f.size)-1]
}

// With company to be expected a batch waits, takes in what comes, and leaves by the
// timer; the timer counts from the first command.
func TestDelayGathersABatch(t *testing.T) {
	var f flushes
	c, p, _ := lane(t, 50*time.Millisecond, f.note)
	r := newRecorder()
	start := time.Now()
	for i := range 5 {
		submit(t, c, r, fmt.Sprint(i))
	}
	if got := strings.Join(p.take(5), ""); got != "01234" {
		t.Errorf("the batch is %q", got)
	}
	if waited := time.Since(start); waited < 45*time.Millisecond {
		t.Errorf("it left after %v", waited)
	}
	if reason, n := f.last(); reason != FlushDelay || n != 5 {
		t.Errorf("%d commands left for the reason %v", n, reason)
	}
}

// The reply that leaves nothing in flight lets a waiting batch go: on an idle
// connection nobody waits for a timer.
func TestIdleReleasesABatch(t *testing.T) {
	var f flushes
	c, p, first := lane(t, time.Second, f.note)
	r := newRecorder()
	start := time.Now()
	submit(t, c, r, "a")
	c.mu.Lock()
	waiting := c.state == flushWaiting
	c.mu.Unlock()
	if !waiting {
		t.Fatal("the batch did not wait")
	}
	p.send("+first\r\n")
	first.expect(t, 1, "+first\r\n")
	p.take(1)
	if reason, _ := f.last(); reason != FlushIdle || time.Since(start) > time.Second/2 {
		t.Errorf("it left after %v for the reason %v", time.Since(start), reason)
	}
}

// A batch that fills up leaves before its time.
func TestFullReleasesABatch(t *testing.T) {
	var f flushes
	c, p, _ := lane(t, time.Second, f.note)
	r := newRecorder()
	submit(t, c, r, "a")
	for range 99 {
		submit(t, c, r, "b")
	}
	p.take(100)
	if reason, n := f.last(); reason != FlushFull || n != 100 {
		t.Errorf("%d commands left for the reason %v", n, reason)
	}
}

// After StopDelaying nothing waits any more, and what waited still leaves.
func TestStopDelaying(t *testing.T) {
	var f flushes
	c, p, _ := lane(t, 100*time.Millisecond, f.note)
	r := newRecorder()
	submit(t, c, r, "waits")
	c.StopDelaying()
	submit(t, c, r, "does not")
	p.take(2)
	submit(t, c, r, "neither")
	p.take(1)
	if reason, _ := f.last(); reason == FlushDelay {
		t.Error("a batch waited for the timer")
	}
}

// Where no timer is to be had, batches leave without one.
func TestNoTimer(t *testing.T) {
	t.Cleanup(func() { newTimer = newWaiter })
	newTimer = func(func()) (*waiter, error) { return nil, errors.New("no descriptors") }
	var f flushes
	c, p, _ := lane(t, time.Second, f.note)
	r := newRecorder()
	submit(t, c, r, "a")
	submit(t, c, r, "b")
	p.take(2)
	p.send("+first\r\n+a\r\n+b\r\n")
	r.expect(t, 2, "+a\r\n+b\r\n")
}

// A buffer that a burst needed is not kept.
func TestLargeBuffersAreNotKept(t *testing.T) {
	c, p := connect(t, Options{})
	go p.echo()
	r := newRecorder()
	submit(t, c, r, strings.Repeat("x", 2*maxSpare))
	r.wait(t, "the reply", func() bool { return r.ended == 1 })
	submit(t, c, r, "small")
	r.wait(t, "the reply", func() bool { return r.ended == 2 })
	until(t, "the end of the writing", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.state == flushIdle })
	c.mu.Lock()
	defer c.mu.Unlock()
	if cap(c.spare) > maxSpare || cap(c.out) > maxSpare {
		t.Errorf("kept %d and %d bytes", cap(c.spare), cap(c.out))
	}
}

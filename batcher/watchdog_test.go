package batcher

import (
	"testing"
	"time"
)

const tooLong = 40 * time.Millisecond

// old makes the connection's clocks stand as if d had passed.
func old(c *Conn, d time.Duration) {
	for _, clock := range []interface {
		Load() int64
		Store(int64)
	}{&c.busySince, &c.lastRead, &c.writeSince} {
		if v := clock.Load(); v != 0 {
			clock.Store(v - int64(d))
		}
	}
}

// An owed reply and silence are overdue; new commands do not re-arm the clock, a byte
// from the server does.
func TestOverdue(t *testing.T) {
	reason := make(chan string, 1)
	c, p := connect(t, Options{Timeout: time.Hour, Events: &Events{Failed: func(r string) { reason <- r }}})
	r := newRecorder()
	if old(c, 2*time.Hour); c.Overdue() {
		t.Fatal("a connection that owes nothing is overdue")
	}
	submit(t, c, r, "a")
	p.take(1)
	old(c, 50*time.Minute)
	submit(t, c, r, "b")
	p.take(1)
	if c.Overdue() {
		t.Fatal("overdue before its time")
	}
	p.send("$3\r\nx")
	r.wait(t, "a byte", func() bool { return r.open > 0 })
	if old(c, 50*time.Minute); c.Overdue() {
		t.Fatal("a byte from the server did not count")
	}
	submit(t, c, r, "c")
	p.take(1)
	if old(c, 11*time.Minute); !c.Overdue() {
		t.Fatal("new commands re-armed the clock")
	}
	r.expect(t, 3, "$3\r\nx???")
	if got := <-reason; got != "timeout" {
		t.Errorf("the reason is %q", got)
	}
}

// When everything has been answered the clock stands; the next command starts it.
func TestOverdueStartsAnew(t *testing.T) {
	c, p := connect(t, Options{Timeout: time.Hour})
	r := newRecorder()
	submit(t, c, r, "a")
	p.take(1)
	p.send("+a\r\n")
	r.expect(t, 1, "+a\r\n")
	until(t, "an idle connection", func() bool { return c.busySince.Load() == 0 })
	if old(c, 2*time.Hour); c.Overdue() {
		t.Error("overdue with nothing in flight")
	}
	submit(t, c, r, "b")
	if c.Overdue() {
		t.Error("the idle time counts against the next command")
	}
}

// Silence that is legal is not overdue.
func TestOverdueExemptions(t *testing.T) {
	for name, exempt := range map[string]func(t *testing.T, c *Conn, r *recorder){
		"a command that may block": func(t *testing.T, c *Conn, r *recorder) {
			c.SetPatient(true)
			submit(t, c, r, "a")
		},
		"a body under way": func(t *testing.T, c *Conn, r *recorder) {
			if c.OpenBody(r) != nil || c.WriteBody(get("a")[:5], false) != nil {
				t.Fatal("no body")
			}
		},
		"a raw connection": func(t *testing.T, c *Conn, r *recorder) {
			if c.SetRaw(r) != nil || c.WriteBody(get("a"), false) != nil {
				t.Fatal("not raw")
			}
		},
		"a reader that waits for its client": func(t *testing.T, c *Conn, r *recorder) {
			submit(t, c, r, "a")
			c.pacing.Store(true)
		},
		"no timeout": func(t *testing.T, c *Conn, r *recorder) {
			c.opts.Timeout = 0
			submit(t, c, r, "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, Options{Timeout: time.Hour})
			exempt(t, c, newRecorder())
			if old(c, 3*time.Hour); c.Overdue() || c.Dead() {
				t.Error("overdue")
			}
		})
	}
}

// The exemptions end with their reason.
func TestOverdueAfterBody(t *testing.T) {
	c, p := connect(t, Options{Timeout: time.Hour})
	r := newRecorder()
	if c.OpenBody(r) != nil || c.WriteBody(get("a"), true) != nil {
		t.Fatal("no body")
	}
	p.take(1)
	if old(c, 2*time.Hour); !c.Overdue() {
		t.Error("a complete body that is not answered is not overdue")
	}
	r.expect(t, 1, "?")
}

// A server that takes nothing of a body is overdue, whatever it owes.
func TestOverdueWithinBody(t *testing.T) {
	near, far := socketpair(t)
	near.SetWriteBuffer(4 << 10)
	defer far.Close()
	c := NewConn(near, Options{Timeout: tooLong})
	r := newRecorder()
	if err := c.OpenBody(r); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- c.WriteBody(make([]byte, 4<<20), false) }()
	until(t, "the connection to be overdue", c.Overdue)
	if err := <-written; err == nil {
		t.Error("the body was written")
	}
	r.expect(t, 1, "!")
	await(t, c.Done(), "the end")
}

// An end that came with the last bytes, with nothing left to wait for, is found by the
// watchdog.
func TestWatchdogFindsTheEnd(t *testing.T) {
	for range 50 {
		c, p := connect(t, Options{})
		r := newRecorder()
		submit(t, c, r, "a")
		p.take(1)
		p.send("+a\r\n")
		p.nc.Close()
		r.expect(t, 1, "+a\r\n")
		until(t, "the end", func() bool {
			old(c, time.Second)
			if c.Overdue() {
				t.Fatal("an end is not silence")
			}
			return c.Dead()
		})
		await(t, c.Done(), "the end")
	}
}

// A connection that lives is not mistaken for one that has ended, whether or not there
// is something to read.
func TestWatchdogLeavesTheLiving(t *testing.T) {
	c, p := connect(t, Options{})
	r := newRecorder()
	old(c, time.Second)
	c.Overdue()
	submit(t, c, r, "a")
	p.take(1)
	p.send("+a\r\n")
	r.expect(t, 1, "+a\r\n")
	old(c, time.Second)
	c.Overdue()
	if c.Dead() {
		t.Error("killed for nothing")
	}
}

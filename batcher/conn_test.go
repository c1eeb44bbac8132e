package batcher

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// Many owners at once, each with several pipelines of several commands: each gets the
// replies to its own commands, all of them, in its order.
func TestOwnership(t *testing.T) {
	const owners, rounds, depth = 40, 25, 4
	for _, tt := range []struct {
		name string
		opts Options
	}{
		{"private", Options{}},
		{"lane without a delay", Options{Shared: true, Policy: PolicyConfig{MaxBytes: 1, MaxCommands: 1}}},
		{"lane with a delay", Options{Shared: true, Policy: PolicyConfig{
			Delay: time.Millisecond, MaxBytes: 1 << 10, MaxCommands: 16,
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, p := connect(t, tt.opts)
			go p.echo()
			var wg sync.WaitGroup
			for o := range owners {
				wg.Go(func() { own(t, c, o, rounds, depth) })
			}
			wg.Wait()
			until(t, "an empty connection", func() bool { return c.InFlight() == 0 })
		})
	}
}

// own is one owner: it sends depth commands at a time and waits for their replies.
func own(t *testing.T, c *Conn, o, rounds, depth int) {
	r := newRecorder()
	var seat *Seat
	if c.shared.Load() {
		seat = new(Seat)
		if !c.Join(seat) {
			t.Error("no seat")
			return
		}
		defer c.Leave(seat)
	}
	var want strings.Builder
	for i := range rounds {
		keys := make([]string, depth)
		for k := range keys {
			keys[k] = fmt.Sprintf("%d:%d:%d", o, i, k)
			want.WriteString(bulk(keys[k]))
		}
		if err := c.Submit(r, seat, get(keys...), depth); err != nil {
			t.Error(err)
			return
		}
		r.wait(t, "replies", func() bool { return r.ended == (i+1)*depth })
	}
	if got := r.text(); got != want.String() {
		t.Errorf("owner %d got %.200q", o, got)
	}
}

// Consecutive commands of one owner are one run; the replies of a chunk reach it in
// one call, and each owner is told once to flush.
func TestRunsMerge(t *testing.T) {
	c, p := connect(t, Options{})
	a, b := newRecorder(), newRecorder()
	submit(t, c, a, "a1")
	p.take(1)
	submit(t, c, a, "a2", "a3")
	submit(t, c, b, "b1")
	submit(t, c, a, "a4")
	c.mu.Lock()
	runs := c.fifo.num
	c.mu.Unlock()
	if runs != 3 {
		t.Errorf("%d runs, want a, b, a", runs)
	}
	p.take(4)
	p.send("+1\r\n+2\r\n+3\r\n+b\r\n+4\r\n")
	a.expect(t, 4, "+1\r\n+2\r\n+3\r\n+4\r\n")
	b.expect(t, 1, "+b\r\n")
	a.wait(t, "flush", func() bool { return a.flushes >= 1 })
}

// A ring that grew in a burst goes on in order, and does not stay large.
func TestRunsRing(t *testing.T) {
	var q runs
	sinks := make([]*recorder, 1000)
	next := 0
	for i := range sinks {
		sinks[i] = newRecorder()
		q.push(sinks[i], nil, 2)
		if i%3 == 0 { // keeps the head moving while the ring grows
			half := q.pop(1)
			if half.sink != Sink(sinks[next]) || half.n != 1 {
				t.Fatalf("popped %d of another owner", half.n)
			}
			if rest := q.pop(5); rest.sink != Sink(sinks[next]) || rest.n != 1 {
				t.Fatalf("the rest of run %d is %d", next, rest.n)
			}
			next++
		}
	}
	for ; next < len(sinks); next++ {
		if r := q.pop(2); r.sink != Sink(sinks[next]) || r.n != 2 {
			t.Fatalf("run %d: %d commands of another owner", next, r.n)
		}
	}
	if q.num != 0 || q.ring != nil {
		t.Errorf("%d runs left, ring of %d kept", q.num, len(q.ring))
	}
}

// A retired connection refuses what is new, answers what it owes, and is then let go,
// once.
func TestRetire(t *testing.T) {
	emptied := make(chan *Conn, 2)
	c, p := connect(t, Options{Shared: true, Policy: DefaultPolicyConfig(), Emptied: func(c *Conn) { emptied <- c }})
	r := newRecorder()
	var seat Seat
	if !c.Join(&seat) {
		t.Fatal("no seat on a new lane")
	}
	if err := c.Submit(r, &seat, get("a"), 1); err != nil {
		t.Fatal(err)
	}
	p.take(1)
	c.Retire()
	c.Retire()
	if !c.Retired() || c.Dead() {
		t.Error("retired is neither live nor dead")
	}
	if err := c.Submit(r, &seat, get("b"), 1); !errors.Is(err, ErrRetired) {
		t.Errorf("a command on a retired connection: %v", err)
	}
	if c.Join(new(Seat)) {
		t.Error("a seat on a retired connection")
	}
	select {
	case <-emptied:
		t.Error("let go while it owes a reply")
	default:
	}
	p.send("+a\r\n")
	r.expect(t, 1, "+a\r\n")
	if got := <-emptied; got != c {
		t.Error("another connection was emptied")
	}
	p.send(">1\r\n+late\r\n") // a chunk that finds it retired and empty again
	c.Retire()
	if !c.Unshare() {
		t.Fatal("an empty connection does not become private")
	}
	submit(t, c, r, "c")
	p.take(1)
	p.send("+c\r\n")
	r.expect(t, 2, "+a\r\n+c\r\n")
	if len(emptied) != 0 {
		t.Error("let go twice")
	}
}

// Retiring a connection that owes nothing lets it go at once.
func TestRetireEmpty(t *testing.T) {
	emptied := 0
	c, _ := connect(t, Options{Shared: true, Policy: DefaultPolicyConfig(), Emptied: func(*Conn) { emptied++ }})
	c.Retire()
	c.Retire()
	if emptied != 1 {
		t.Errorf("let go %d times", emptied)
	}
}

// A seat is good for one term of the connection as a lane, whatever comes after.
func TestStaleSeat(t *testing.T) {
	c, p := connect(t, Options{})
	r := newRecorder()
	if c.Join(new(Seat)) {
		t.Error("a seat on a private connection")
	}
	if !c.Share(DefaultPolicyConfig(), time.Millisecond) {
		t.Fatal("an idle connection cannot be shared")
	}
	var seat Seat
	if !c.Join(&seat) {
		t.Fatal("no seat on a lane")
	}
	c.Retire()
	if !c.Unshare() || !c.Share(DefaultPolicyConfig(), 0) {
		t.Fatal("an empty connection cannot change its role")
	}
	if err := c.Submit(r, &seat, get("a"), 1); !errors.Is(err, ErrRetired) {
		t.Errorf("a seat of the term before last: %v", err)
	}
	if !c.Join(&seat) {
		t.Fatal("no new seat")
	}
	if err := c.Submit(r, &seat, get("a"), 1); err != nil {
		t.Fatal(err)
	}
	p.take(1)
	if c.Unshare() {
		t.Error("a connection that owes a reply became private")
	}
	p.send("+a\r\n")
	r.expect(t, 1, "+a\r\n")
	c.Close()
	await(t, c.Done(), "the end")
	if c.Share(DefaultPolicyConfig(), 0) || c.Unshare() || c.Join(&seat) {
		t.Error("a dead connection took a role")
	}
	if err := c.Submit(r, &seat, get("a"), 1); !errors.Is(err, ErrDead) {
		t.Errorf("a command on a dead connection: %v", err)
	}
}

// Opened and Closed balance for each role, through every change of it.
func TestRolesAreCounted(t *testing.T) {
	var mu sync.Mutex
	open := map[string]int{}
	var failed []string
	count := func(d int) func(string) {
		return func(kind string) { mu.Lock(); open[kind] += d; mu.Unlock() }
	}
	events := &Events{Opened: count(1), Closed: count(-1), Failed: func(reason string) { failed = append(failed, reason) }}
	c, _ := connect(t, Options{Kind: "private", Events: events})
	c.Share(DefaultPolicyConfig(), 0)
	if c.Kind() != "lane" || open["lane"] != 1 || open["private"] != 0 {
		t.Errorf("a shared connection is a %q, open %v", c.Kind(), open)
	}
	c.Close()
	await(t, c.Done(), "the end")
	if open["lane"] != 0 || open["private"] != 0 {
		t.Errorf("after the end: %v", open)
	}
	if len(failed) != 0 {
		t.Errorf("closing on purpose counts as failure: %v", failed)
	}
}

// The last command retires its connection in the same step and may be silent.
func TestSubmitLast(t *testing.T) {
	emptied := make(chan struct{}, 1)
	c, p := connect(t, Options{
		Shared: true, Policy: DefaultPolicyConfig(), Timeout: time.Nanosecond, Emptied: func(*Conn) { emptied <- struct{}{} },
	})
	r := newRecorder()
	if err := c.SubmitLast(r, get("w")); err != nil {
		t.Fatal(err)
	}
	if err := c.SubmitLast(r, get("x")); !errors.Is(err, ErrRetired) {
		t.Errorf("another last command: %v", err)
	}
	p.take(1)
	if c.Overdue() {
		t.Error("a command that may block is overdue")
	}
	p.send(":0\r\n")
	r.expect(t, 1, ":0\r\n")
	await(t, emptied, "the connection to be let go")
	if !c.Unshare() {
		t.Fatal("it does not return to the private ones")
	}
	submit(t, c, r, "y")
	p.take(1)
	if !c.Overdue() {
		t.Error("the patience for one command stayed")
	}
}

// A closed connection fails what it owes, tells it once, and nothing follows.
func TestCloseFailsWhatIsOwed(t *testing.T) {
	closed := make(chan *Conn, 1)
	c, p := connect(t, Options{Closed: func(c *Conn) { closed <- c }})
	r := newRecorder()
	submit(t, c, r, "a", "b")
	p.take(2)
	c.Close()
	c.Close()
	await(t, c.Done(), "the end")
	r.expect(t, 2, "??")
	select {
	case got := <-closed:
		if got != c {
			t.Error("another connection was closed")
		}
	case <-time.After(patience):
		t.Error("nobody was told of the end")
	}
	if c.IdleFor() < 0 || c.InFlight() != 0 {
		t.Errorf("a dead connection has %d in flight", c.InFlight())
	}
}

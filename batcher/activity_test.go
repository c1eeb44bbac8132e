package batcher

import (
	"math/rand/v2"
	"testing"
)

func TestActivity(t *testing.T) {
	const window = 100
	var a Activity
	var x, y, z Member
	for _, step := range []struct {
		name string
		do   func()
		now  int64
		want int
	}{
		{"nobody", func() {}, 0, 0},
		{"a reply to something never seen", func() { a.Answered(&x, 1) }, 0, 0},
		{"x waits", func() { a.Sent(&x, 10, 2) }, 10, 0},
		{"x waits for its second reply", func() { a.Answered(&x, 1) }, 11, 0},
		{"x has all replies", func() { a.Answered(&x, 1) }, 12, 1},
		{"x and a reply too many", func() { a.Answered(&x, 5) }, 12, 1},
		{"x sends nothing", func() { a.Sent(&x, 12, 0) }, 12, 1},
		{"x waits again", func() { a.Sent(&x, 20, 1) }, 20, 0},
		{"y too", func() { a.Sent(&y, 21, 3) }, 21, 0},
		{"x is idle", func() { a.Answered(&x, 1) }, 30, 1},
		{"both are", func() { a.Answered(&y, 7) }, 31, 2},
		{"x exactly at the edge", func() {}, 120, 2},
		{"x beyond it", func() {}, 121, 1},
		{"y beyond it", func() {}, 122, 0},
		{"x once more", func() { a.Sent(&x, 130, 1); a.Answered(&x, 1) }, 131, 1},
		{"z waits and leaves", func() { a.Sent(&z, 131, 1); a.Left(&z) }, 132, 0 + 1},
		{"x leaves", func() { a.Left(&x) }, 133, 0},
		{"x leaves twice", func() { a.Left(&x) }, 133, 0},
		{"a late reply to x", func() { a.Answered(&x, 1) }, 134, 0},
		{"answered long after it was sent", func() { a.Sent(&y, 140, 1); a.Answered(&y, 1) }, 500, 0},
	} {
		step.do()
		if got := a.IdleActive(step.now, window); got != step.want {
			t.Fatalf("%s: %d, want %d", step.name, got, step.want)
		}
	}
	if x.prev != nil || x.next != nil || a.front != nil || a.back != nil {
		t.Error("links are left behind")
	}
}

// A client that sends between its replies never waits, whatever is in flight;
// one whose pipeline takes several chunks does; one that changes its ways is
// believed after a few chunks.
func TestActivityStreaming(t *testing.T) {
	const window = 1000
	var a Activity
	var m Member
	now := int64(0)
	send := func() { now++; a.Sent(&m, now, 1) }
	reply := func() { now++; a.Answered(&m, 1) }
	expect := func(name string, want int) {
		t.Helper()
		if got := a.IdleActive(now, window); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	send()
	send()
	send()
	expect("a pipeline in three chunks", 0)
	reply()
	expect("two replies missing", 0)
	send()
	expect("sent between replies", 1)
	reply()
	reply()
	expect("one reply missing", 1)
	reply()
	expect("no reply missing", 1)
	for range streamingChunks - 1 {
		send()
		expect("sequential again, not yet believed", 1)
		reply()
	}
	send()
	expect("sequential again", 0)
	reply()
	send()
	send()
	reply()
	send()
	expect("streaming again", 1)
	now += window + 1
	expect("silent for too long", 0)
	reply()
	reply()
	reply()
	expect("answered, but still silent for too long", 0)
}

// After a time without notice the counts are wrong; Reset makes them right
// again, and members need not be told.
func TestActivityReset(t *testing.T) {
	var a Activity
	var idle, waiting, stale Member
	a.Sent(&idle, 1, 1)
	a.Answered(&idle, 1)
	a.Sent(&waiting, 2, 9)
	a.Sent(&stale, 3, 9)
	a.Reset()
	if got := a.IdleActive(3, 100); got != 0 {
		t.Errorf("%d after Reset", got)
	}
	a.Sent(&waiting, 4, 1)
	a.Answered(&waiting, 1)
	a.Answered(&stale, 1)
	a.Left(&idle)
	if got := a.IdleActive(4, 100); got != 1 {
		t.Errorf("%d, want the one that sent since", got)
	}
}

// A session that has left one lane joins another.
func TestActivityChangesLane(t *testing.T) {
	var a, b Activity
	var m Member
	a.Reset()
	a.Sent(&m, 1, 1)
	a.Left(&m)
	b.Sent(&m, 2, 1)
	b.Answered(&m, 1)
	if a.IdleActive(2, 10) != 0 || b.IdleActive(2, 10) != 1 {
		t.Errorf("old lane %d, new lane %d", a.IdleActive(2, 10), b.IdleActive(2, 10))
	}
}

// Against a plain list of sequential sessions, with replies in the order of
// commands as a lane gives them: always the same number.
func TestActivityAgainstModel(t *testing.T) {
	const sessions, window = 50, 300
	rnd := rand.New(rand.NewPCG(3, 4))
	var a Activity
	members, waiting, last := make([]Member, sessions), make([]bool, sessions), make([]int64, sessions)
	var flight []int
	now := int64(0)
	for range 20000 {
		now += rnd.Int64N(10)
		switch i := rnd.IntN(sessions); {
		case rnd.IntN(2) == 0 && !waiting[i]:
			a.Sent(&members[i], now, 1)
			waiting[i], last[i] = true, now
			flight = append(flight, i)
		case len(flight) > 0:
			i, flight = flight[0], flight[1:]
			a.Answered(&members[i], 1)
			waiting[i] = false
		}
		want := 0
		for i := range members {
			if !waiting[i] && last[i] > 0 && now-last[i] <= window {
				want++
			}
		}
		if got := a.IdleActive(now, window); got != want {
			t.Fatalf("at %d: %d, want %d", now, got, want)
		}
	}
}

// Replies in any order may misplace a session, never lose or double it.
func TestActivityOutOfOrder(t *testing.T) {
	const sessions = 200
	rnd := rand.New(rand.NewPCG(5, 6))
	var a Activity
	members := make([]Member, sessions)
	for now := range int64(50) {
		order := rnd.Perm(sessions)
		for i := range members {
			a.Sent(&members[i], now*sessions+int64(i), 1)
		}
		for _, i := range order {
			a.Answered(&members[i], 1)
		}
		end := (now + 1) * sessions
		if got := a.IdleActive(end, sessions); got != sessions {
			t.Fatalf("%d idle of %d", got, sessions)
		}
		if got := a.IdleActive(end+2*sessions, sessions); got != 0 {
			t.Fatalf("%d idle long after", got)
		}
	}
}

func TestActivityAllocatesNothing(t *testing.T) {
	var a Activity
	var m Member
	now := int64(0)
	if n := testing.AllocsPerRun(100, func() {
		now++
		a.Sent(&m, now, 1)
		a.Answered(&m, 1)
		a.IdleActive(now, 10)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

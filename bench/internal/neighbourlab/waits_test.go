package neighbourlab

import (
	"errors"
	"math"
	"testing"
	"time"
)

const ms = time.Millisecond

func near(got, want float64) bool { return math.Abs(got-want) <= want/100 }

// scheduled is a schedule whose attack and what follows began then.
func scheduled(attack, relief time.Duration) *schedule {
	s := newSchedule()
	s.began[under].Store(int64(attack))
	s.began[afterwards].Store(int64(relief))
	return s
}

func TestQuantiles(t *testing.T) {
	tally, s := newTally(), scheduled(ms, time.Hour)
	for i := range 100 {
		tally.add(s, ms, ms+time.Duration(i+1)*ms, time.Second, nil)
	}
	w := tally.waits(under)
	if w.Count != 100 || !near(w.P50, 50) || !near(w.P99, 99) || !near(w.Max, 100) || w.Errors != 0 {
		t.Errorf("of 1 to 100 ms: %+v", w)
	}
	if other := tally.waits(afterwards); other.Count != 0 || other.Max != 0 {
		t.Errorf("of another phase: %+v", other)
	}
}

// A stall is felt by all who would have come in its time, and in the phase in which they would.
func TestAStallCountsForThoseWhoWouldHaveCome(t *testing.T) {
	tally, s := newTally(), scheduled(ms, 500*ms)
	for range 900 {
		tally.add(s, ms, 2*ms, 2*ms, nil)
	}
	tally.add(s, 10*ms, 210*ms, 2*ms, nil)
	w := tally.waits(under)
	if w.Count != 1000 || !near(w.P50, 1) || !near(w.P99, 180) || !near(w.Max, 200) {
		t.Errorf("900 of 1 ms and a stall of 200 ms at one every 2 ms: %+v", w)
	}
	tally.add(s, 400*ms, 600*ms, 2*ms, nil)
	if w := tally.waits(afterwards); w.Count != 50 || !near(w.Max, 100) {
		t.Errorf("the second half of a stall of 200 ms: %+v", w)
	}
}

func TestErrorsAreCountedAndTheFirstIsKept(t *testing.T) {
	tally, s := newTally(), scheduled(ms, time.Hour)
	tally.add(s, ms, 5*ms, time.Second, errors.New("first"))
	tally.add(s, ms, ms, time.Second, errors.New("second"))
	tally.add(s, ms, 10*time.Minute, time.Hour, nil)
	if w := tally.waits(under); w.Errors != 2 || w.Fault != "first" || w.Count != 3 || !near(w.Max, 60_000) {
		t.Errorf("%+v", w)
	}
}

func TestSchedule(t *testing.T) {
	s := newSchedule()
	if s.phase(s.now()) != warmup || s.over() {
		t.Error("it does not begin with the warm-up")
	}
	for p, at := range map[phase]time.Duration{under: 10 * ms, afterwards: 20 * ms} {
		s.began[p].Store(int64(at))
	}
	for at, want := range map[time.Duration]phase{9 * ms: warmup, 10 * ms: under, 19 * ms: under, 20 * ms: afterwards, time.Hour: afterwards} {
		if got := s.phase(at); got != want {
			t.Errorf("at %v: phase %d, want %d", at, got, want)
		}
	}
	if s.enter(over); !s.over() {
		t.Error("it does not end")
	}
}

func TestSilentNeighboursAreNamed(t *testing.T) {
	h := Heard{Under: map[string]Waits{}, After: map[string]Waits{}}
	for _, n := range neighbours {
		h.Under[n.name], h.After[n.name] = Waits{Count: 1}, Waits{Count: 1}
	}
	if err := h.check(); err != nil {
		t.Error(err)
	}
	h.After[Pop] = Waits{}
	delete(h.Under, Get)
	if err := h.check(); err == nil || err.Error() != "nothing is known of the neighbour \"GET\" under attack\nnothing is known of the neighbour \"pop\" afterwards" {
		t.Errorf("%v", err)
	}
}

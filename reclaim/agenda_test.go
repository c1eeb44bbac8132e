package reclaim

import (
	"testing"
	"time"
)

func TestAgenda(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	var a agenda
	var sweeps []*sweep
	for _, due := range []int{5, 1, 4, 2, 3} {
		w := &sweep{place: -1}
		a.set(w, at(due))
		sweeps = append(sweeps, w)
	}
	if w, next := a.next(start); w != nil || !next.Equal(at(1)) {
		t.Errorf("before all: %v, then at %v", w, next)
	}
	a.set(sweeps[0], at(0)) // hurried
	a.set(sweeps[1], at(6)) // put off
	for i, want := range []int{0, 3, 4, 2} {
		if w, _ := a.next(at(5)); w != sweeps[want] || w.place != -1 {
			t.Errorf("%d: not the soonest", i)
		}
	}
	if w, next := a.next(at(5)); w != nil || !next.Equal(at(6)) {
		t.Errorf("what was put off: %v, then at %v", w, next)
	}
}

// TestTickLooksAtWhatIsDue: the engine is woken far more often than a sweep is due, and
// there may be very many.
func TestTickLooksAtWhatIsDue(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		w.known("s")
		e := w.engines[0]
		s := e.stopRounds()
		e.mu.Lock()
		clear(s.readers)
		e.mu.Unlock()
		e.tick(time.Now())
		if e.sweeps[s.key] != s {
			w.t.Error("looked at long before it is due")
		}
		e.tick(s.due)
		if len(e.sweeps) != 0 || len(e.covering) != 0 {
			w.t.Error("kept without a reader")
		}
	})
}

package reclaim

import (
	"context"
	"testing"
	"time"
)

func TestStreamsAreDescribed(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("b", "a")
		id := w.abandon("a")
		time.Sleep(testMinIdle + 2*testInterval)
		got := w.engines[0].Streams()
		if len(got) != 2 || got[0].Stream != "a" || got[1].Stream != "b" {
			w.t.Fatalf("%+v", got)
		}
		a, b := got[0], got[1]
		if a.State != "hot" || a.FirstID != id || a.FirstOwner != "dead" || a.Group != "g" || a.MinIdle != testMinIdle {
			w.t.Errorf("%+v", a)
		}
		if b.State != "cold" || b.FirstID != "" || b.Age < 0 || b.Age > testInterval+time.Second || !b.Leading || b.Consumers != 1 || b.Why != "" {
			w.t.Errorf("%+v", b)
		}
		w.srv.mu.Lock()
		w.srv.denied["EVAL"] = true
		w.srv.mu.Unlock()
		for range 50 {
			pass1(c, "w", []string{"b", "a"})
			time.Sleep(time.Second)
		}
		if b := w.engines[0].Streams()[1]; b.State != "unknown" || b.Why != "rounds fail" || b.Leading {
			w.t.Errorf("%+v", b)
		}
		w.engines[0].Drain(context.Background())
		if b := w.engines[0].Streams()[1]; b.Why != "draining" {
			w.t.Errorf("%+v", b)
		}
	})
}

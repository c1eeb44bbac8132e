package reclaim

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// TestOnlyTheHolderSpeaksOfLargeGroups: what was reported is taken back when another
// proxy reads the pages, or it would stand in the metrics of a proxy that knows
// nothing of it any more.
func TestOnlyTheHolderSpeaksOfLargeGroups(t *testing.T) {
	var reported atomic.Int64
	inWorld(t, 1, func(c *Config) {
		c.Events.LargePEL = func(_, _ string, n int64, _ time.Duration) { reported.Store(n) }
	}, func(w *world) {
		names := w.streams(1)
		w.srv.mu.Lock()
		s := w.srv.streams[names[0]]
		g := s.groups["g"]
		for i := range largePEL + 1 {
			id := fakeID{uint64(i + 1), 0}
			s.ids = append(s.ids, id)
			g.pel[id] = &fakePending{owner: "busy", at: time.Now().Add(time.Hour), count: 1}
		}
		g.last = fakeID{largePEL + 1, 0}
		w.srv.mu.Unlock()
		pass1(w.client(0), "w", names)
		time.Sleep(2 * testInterval)
		if n := reported.Load(); n != largePEL+1 {
			w.t.Fatalf("reported %d", n)
		}
		w.engines[0].Drain(context.Background())
		if n := reported.Load(); n != 0 {
			w.t.Errorf("still reported after the lease was given up: %d", n)
		}
	})
}

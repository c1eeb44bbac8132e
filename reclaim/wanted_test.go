package reclaim

import (
	"context"
	"testing"
	"time"
)

// Nothing is claimed for a client that has gone when its claim is about to be made: the entry is still its
// old owner's. Nor does anybody wait for it until its streams are learned.
func TestNothingIsClaimedForWhoHasGone(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a", "b")
		w.abandon("a")
		time.Sleep(testMinIdle + 2*testInterval)
		gone, leave := context.WithCancel(context.Background())
		leave()
		ctx := Wanted(context.Background(), gone)

		v := c.s.Command(scanCommand([]byte(commandOf(claimArgs("a", "w")...))))
		if v.Action != Defer {
			w.t.Fatalf("action %d, not deferred", v.Action)
		}
		if v = v.Task.Run(ctx); v.Action != Forward {
			w.t.Errorf("action %d, not forwarded", v.Action)
		}
		if n := w.entries.of("claimed"); n != 0 {
			w.t.Errorf("%d entries were claimed", n)
		}
		if v := c.s.Command(scanCommand([]byte(commandOf(claimArgs("a", "w")...)))).Task.Run(context.Background()); v.Action != Answer {
			w.t.Errorf("then for who is there: action %d", v.Action)
		}

		l := &learning{done: make(chan struct{})}
		start := time.Now()
		again := func() Verdict { return Verdict{} }
		if c.s.await(l, again).Task.Run(ctx); time.Since(start) != 0 {
			w.t.Errorf("waited for %v", time.Since(start))
		}
		if c.s.await(l, again).Task.Run(context.Background()); time.Since(start) != learnPatience {
			w.t.Errorf("who is there waited for %v", time.Since(start))
		}
	})
}

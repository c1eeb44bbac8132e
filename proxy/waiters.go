package proxy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/upstream"
)

// Who finds no spare waits in a queue, and gets whatever is there first: a connection that
// another gives back, or one that has been dialled. The dials belong to nobody: one whose
// client has left is not lost, and one that nobody waits for any more is not begun.

// waiter is somebody who waits for a private connection. A regular has had one before: every second
// connection goes to the first of those, so that a crowd of strangers, however many they are, does
// not make them wait for all its dials.
type waiter struct {
	served chan served // room for one, written once
	claim
}

// served is a connection, or why there will be none.
type served struct {
	conn *batcher.Conn
	err  error
}

// reserve takes a spare, as choose says if it finds one, or queues for the next.
func (s *spares) reserve(choose func(*spares) *batcher.Conn, who claim) (*batcher.Conn, *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.lendNow(choose, who); c != nil {
		return c, nil
	}
	if len(s.waiting) == 0 {
		s.trouble = nil // it was others'
	}
	w := &waiter{make(chan served, 1), who}
	s.waiting = append(s.waiting, w)
	return nil, w
}

// lend is reserve without the queue.
func (s *spares) lend(choose func(*spares) *batcher.Conn, who claim) *batcher.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lendNow(choose, who)
}

// lendNow is lend with the lock held.
func (s *spares) lendNow(choose func(*spares) *batcher.Conn, who claim) *batcher.Conn {
	if !s.lends(who) {
		return nil
	}
	return choose(s)
}

// nextWaiter takes out of the queue whose turn it is, of those who may have the connection: everybody
// one that was dialled, not everybody one that was given back, and nobody who may end it one that was
// a lane. It returns nil if there is none. The lock is held.
func (s *spares) nextWaiter(dialled, lane bool) *waiter {
	fits := func(w *waiter) bool { return !lane || w.use != useHold }
	may := func(w *waiter) bool { return fits(w) && (dialled || s.lendsAgain(w.claim)) }
	i := -1
	if s.servings++; s.servings%2 == 1 {
		i = slices.IndexFunc(s.waiting, func(w *waiter) bool { return w.regular && fits(w) })
	}
	if i < 0 {
		i = slices.IndexFunc(s.waiting, may)
	}
	if i < 0 {
		return nil
	}
	w := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.fed[line(w.regular)] = time.Now()
	return w
}

// line tells the queue's two kinds apart.
func line(regular bool) int {
	if regular {
		return 1
	}
	return 0
}

// moved is when somebody was served last who waits like that, and whether the last dial failed.
func (s *spares) moved(regular bool) (at time.Time, troubled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fed[line(regular)], s.trouble != nil
}

// anyRegular reports whether a regular waits.
func (s *spares) anyRegular() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.waiting, func(w *waiter) bool { return w.regular })
}

// leave takes a waiter out of the queue; what it has been served meanwhile is its own.
func (s *spares) leave(w *waiter) (got served, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return got, false
	}
	return <-w.served, true
}

// refuse tells all who wait that there will be no connection.
func (s *spares) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waiting {
		w.served <- served{err: err}
	}
	s.waiting = nil
}

// hire books a dialer, if one more is needed for those who wait and for keep spares. most is about as
// many as the gate lets through: more would only wait there, and go on when nobody wants them any more.
func (s *spares) hire(keep, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialing >= min(s.wanted(keep), most) {
		return false
	}
	s.dialing++
	return true
}

// goOn reports whether a dialer is still needed after a dial that ended with err; if not it has
// been dismissed. Spares alone are not worth a second attempt.
func (s *spares) goOn(keep int, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = err
	s.handOut()
	if s.dialing > s.wanted(keep) || err != nil && len(s.waiting) == 0 {
		s.dialing--
		return false
	}
	return true
}

// wanted is how many connections there should be more. The lock is held.
func (s *spares) wanted(keep int) int { return len(s.waiting) + max(keep-len(s.idle), 0) }

// wait waits for a connection until ctx ends.
func (h *hub) wait(ctx context.Context, w *waiter) (*batcher.Conn, error) {
	select {
	case got := <-w.served:
		return got.conn, got.err
	case <-ctx.Done():
	case <-h.p.closing:
	}
	if got, late := h.spares.leave(w); late {
		return got.conn, got.err
	}
	h.spares.mu.Lock()
	defer h.spares.mu.Unlock()
	if h.spares.trouble != nil {
		return nil, h.spares.trouble
	}
	return nil, cmp.Or(ctx.Err(), context.Canceled)
}

// staff sees to it that enough dials are under way.
func (h *hub) staff() {
	for !h.p.stopping() && h.spares.hire(h.keeps(), h.p.dialer.Gate.Width()) {
		h.p.wg.Go(h.dialOn)
	}
}

// keeps is how many spares are to be ready.
func (h *hub) keeps() int {
	if h.p.warm.Load() != h {
		return 0
	}
	return h.p.cfg.PrivateMinIdle
}

// dialOn dials until nobody waits any more.
func (h *hub) dialOn() {
	for n := 1; ; n++ {
		err := h.dialSpare()
		if h.denied(err) || h.barred(err) {
			h.spares.refuse(err)
			h.p.warm.CompareAndSwap(h, nil) // no spare is dialled until somebody wants one
		}
		if !h.spares.goOn(h.keeps(), err) {
			return
		}
		if err == nil {
			n = 0
			h.staff() // there may be more places now
			continue
		}
		select {
		case <-time.After(h.p.dialer.Gate.Pause(n)):
		case <-h.p.closing:
		}
	}
}

// dialSpare dials one private connection for whoever comes first.
func (h *hub) dialSpare() error {
	ctx, cancel := h.p.within(h.p.cfg.DialTimeout)
	defer cancel()
	rank := upstream.ForOne
	if h.spares.anyRegular() {
		rank = upstream.ForRegular
	}
	c, err := h.dialAs(ctx, rank, "private")
	if err == nil {
		h.add(c, true)
	}
	return err
}

// moved is when the queue for the hub's connections moved last: somebody got one, or others did while
// none of its own dials is known to have failed.
func (h *hub) moved(regular bool) time.Time {
	at, troubled := h.spares.moved(regular)
	if troubled || h.turnedAway() {
		return at
	}
	if welcomed := h.p.dialer.Gate.Welcomed(); welcomed.After(at) {
		return welcomed
	}
	return at
}

// turnedAway reports whether a lane's last dial failed, or the last visit.
func (h *hub) turnedAway() bool {
	return h.visits.failed() || slices.ContainsFunc(h.lanes, func(l *batcher.Lane) bool { return l.Down() != nil })
}

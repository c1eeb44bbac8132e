package proxy

import (
	"context"
	"sync"
	"time"
)

// A client that waits for a connection to the server may reset its own meanwhile. Nobody
// would read the reply, and what it sent need not be executed, no more than by a server that
// had not read it yet. It leaves the queue, in which others stand behind it. One that has
// only ended its sending direction stays: what it sent before is executed.

// patience is patienceOf for --upstream-wait.
func (s *session) patience() (ctx context.Context, cancel context.CancelFunc) {
	return s.patienceOf(s.p.cfg.UpstreamWait)
}

// patienceOf is a context for a wait of the session's reader, of at most d, which ends with
// cancel. It ends too when the client resets its connection, or when the proxy closes it.
func (s *session) patienceOf(d time.Duration) (ctx context.Context, cancel context.CancelFunc) {
	ctx, end := s.p.within(d)
	return ctx, s.waits(end)
}

// patienceFor is patience for a connection of h. --upstream-wait is for a server that is away: while
// connections come, a client goes on waiting for its own, however many stand before it.
func (s *session) patienceFor(h *hub) (ctx context.Context, cancel context.CancelFunc) {
	regular := s.regular
	ctx, end := queueing(s.p.ctx, s.p.cfg.UpstreamWait, func() time.Time { return h.moved(regular) })
	return ctx, s.waits(end)
}

// queueing is a context for who stands in a queue: it ends when that has not moved for d. moved is when
// it moved last.
func queueing(parent context.Context, d time.Duration, moved func() time.Time) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(parent)
	var timer *time.Timer
	var mu sync.Mutex // the function may run before the timer has its name
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		if left := time.Until(moved().Add(d)); left > 0 && ctx.Err() == nil {
			timer.Reset(left)
			return
		}
		end()
	})
	return ctx, func() {
		end()
		timer.Stop()
	}
}

// waits has end called when the client resets its connection, or the proxy closes it, until the
// function that it returns is called, which does so too.
func (s *session) waits(end context.CancelFunc) context.CancelFunc {
	s.mu.Lock()
	s.resign = end
	closed, left := s.closed, s.left.Load()
	s.mu.Unlock()
	if closed || left && s.isReset() {
		end() // it was told of before
	}
	return func() {
		s.mu.Lock()
		s.resign = nil
		s.mu.Unlock()
		end()
	}
}

// resigned reports whether the client that has waited in vain is not there any more.
func (s *session) resigned() bool {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	return closed || s.left.Load() && s.isReset()
}

// quits ends the session if its client has reset the connection, where it would be told that something was
// not done: it hears that no more, and what stands behind is not done either. Hundreds of commands would
// be answered one by one.
func (s *session) quits() bool {
	if !s.resigned() {
		return false
	}
	s.ending = s.hungUp(true)
	return true
}

// noteDown is the proxy's, for a wait that may have ended only with its client.
func (s *session) noteDown(err error) {
	if !s.resigned() {
		s.p.noteDown(err)
	}
}

package proxy

import (
	"context"
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
	s.mu.Lock()
	s.resign = end
	closed, left := s.closed, s.left.Load()
	s.mu.Unlock()
	if closed || left && s.isReset() {
		end() // it was told of before
	}
	return ctx, func() {
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

// noteDown is the proxy's, for a wait that may have ended only with its client.
func (s *session) noteDown(err error) {
	if !s.resigned() {
		s.p.noteDown(err)
	}
}

package proxy

import "context"

// A client that waits for a connection to the server may reset its own meanwhile. Nobody
// would read the reply, and what it sent need not be executed, no more than by a server that
// had not read it yet. It leaves the queue, in which others stand behind it. One that has
// only ended its sending direction stays: what it sent before is executed.

// patience is a context for a wait of the session's reader, of --upstream-wait, which ends with
// cancel. It ends too when the client resets its connection.
func (s *session) patience() (ctx context.Context, cancel context.CancelFunc) {
	ctx, end := s.p.within(s.p.cfg.UpstreamWait)
	s.mu.Lock()
	s.resign = end
	left := s.left.Load()
	s.mu.Unlock()
	if left && s.isReset() {
		end() // it was told of before
	}
	return ctx, func() {
		s.mu.Lock()
		s.resign = nil
		s.mu.Unlock()
		end()
	}
}

// resigned reports whether the client that has waited in vain has left.
func (s *session) resigned() bool { return s.left.Load() && s.isReset() }

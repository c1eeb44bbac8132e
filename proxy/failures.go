package proxy

import (
	"time"

	"golang.org/x/time/rate"
)

// Guesses are slowed down where they are told to be wrong, and not before they are asked:
// a right password cannot be told from a wrong one before, and would wait among them. A
// session asks again only when it has been told.

const (
	// failuresPerSecond and failureBurst bound how fast wrong credentials are told to be
	// wrong, to all sessions together.
	failuresPerSecond = 200
	failureBurst      = 1000
	// sessionFailuresPerSecond and sessionFailureBurst are the same for one session.
	sessionFailuresPerSecond = 1
	sessionFailureBurst      = 3
	// maxFailurePause bounds how long one that is wrong waits to be told.
	maxFailurePause = 5 * time.Second
)

// refuseCredentials answers wrong credentials with reply, in due time.
func (s *session) refuseCredentials(reply []byte) {
	s.slowDown()
	s.answer(reply)
}

// slowDown counts wrong credentials and waits until it is time to tell that they are. Only this
// session waits.
func (s *session) slowDown() {
	if s.failures == nil {
		s.failures = rate.NewLimiter(sessionFailuresPerSecond, sessionFailureBurst)
	}
	if d := max(failurePause(s.failures), failurePause(s.p.identities.failures)); d > 0 {
		s.waitIdle()
		s.pause(d)
	}
}

// failurePause counts one failure and returns how long it is kept back.
func failurePause(l *rate.Limiter) time.Duration {
	r := l.Reserve()
	d := r.Delay()
	if d <= maxFailurePause {
		return d
	}
	r.Cancel() // it will not be waited for
	return maxFailurePause
}

// pause waits, unless the session is about to end.
func (s *session) pause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	over := false
	timer := time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		over = true
		s.cond.Broadcast()
	})
	defer timer.Stop()
	for !over && !s.closed && s.dismissal == staying && !s.left.Load() {
		s.cond.Wait()
	}
}

package proxy

import (
	"testing"
	"testing/synctest"
	"time"
)

// failing is a session without a client that can be told of failures.
func failing(p *Proxy) *session {
	s := &session{p: p}
	s.cond.L = &s.mu
	return s
}

// tell has a session told of n failures and returns how long that took.
func tell(s *session, n int) time.Duration {
	began := time.Now()
	for range n {
		s.refuseCredentials(replyOK)
		s.local = 0 // there is no connection on which to send it
	}
	return time.Since(began)
}

// A session that goes on being wrong is told so ever more slowly, and nobody else is.
func TestFailuresOfOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Proxy{identities: newIdentities()}
		s := failing(p)
		if d := tell(s, sessionFailureBurst); d != 0 {
			t.Errorf("slips of the finger take %v", d)
		}
		if d := tell(s, 10); d != 10*time.Second {
			t.Errorf("ten more take %v", d)
		}
		if d := tell(failing(p), 1); d != 0 {
			t.Errorf("another waits %v", d)
		}
	})
}

// Many sessions that are wrong once are told at the rate for all of them, and none waits
// without end.
func TestFailuresOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Proxy{identities: newIdentities()}
		for range failureBurst {
			if d := tell(failing(p), 1); d != 0 {
				t.Fatalf("within the burst: %v", d)
			}
		}
		const more = 3 * failuresPerSecond
		told := make(chan time.Duration, more)
		for range more {
			go func() { told <- tell(failing(p), 1) }()
		}
		var longest time.Duration
		for range more {
			longest = max(longest, <-told)
		}
		if longest < 2900*time.Millisecond || longest > 3*time.Second {
			t.Errorf("the last of %d waits %v", more, longest)
		}
		for range 2 * failuresPerSecond * int(maxFailurePause/time.Second) {
			go func() { told <- tell(failing(p), 1) }()
		}
		for range 2 * failuresPerSecond * int(maxFailurePause/time.Second) {
			if d := <-told; d > maxFailurePause {
				t.Fatalf("waits %v", d)
			}
		}
	})
}

// What ends a session ends its waiting.
func TestFailuresOfWhoLeaves(t *testing.T) {
	for name, end := range map[string]func(s *session){
		"closed":    func(s *session) { s.mu.Lock(); s.seal(); s.mu.Unlock() },
		"left":      func(s *session) { s.mu.Lock(); s.left.Store(true); s.cond.Broadcast(); s.mu.Unlock() },
		"dismissed": func(s *session) { s.mu.Lock(); s.dismissal = leaving; s.cond.Broadcast(); s.mu.Unlock() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := failing(&Proxy{identities: newIdentities()})
				time.AfterFunc(time.Second/4, func() { end(s) })
				if d := tell(s, sessionFailureBurst+1); d != time.Second/4 {
					t.Errorf("it ends after %v", d)
				}
			})
		})
	}
}

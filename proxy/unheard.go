package proxy

import "time"

// What passes on a connection of a client's own is not counted: messages stand between replies,
// and some commands have none. A drain has to know all the same whether such a client waits
// for something. It does if it has sent a command that is answered at once, and nothing has come
// from the server since.

// noteAsked notes a command that is passed on.
func (s *session) noteAsked(route Route) {
	switch {
	case route.Class == ClassBlocking: // may wait for long, as it does elsewhere
		return
	case route.Class == ClassForGood, route.Class == ClassSubscriber: // CLIENT REPLY, REPLCONF ACK
		s.silent = s.silent || route.Class == ClassForGood && route.Verb != VerbClientTracking
	case !s.silent:
		s.mu.Lock()
		s.unheard = !s.gone
		s.mu.Unlock()
	}
	s.lastWork.Store(time.Now().UnixNano())
}

// heard notes that something has come from the server. The lock is held.
func (s *session) heard() {
	if s.unheard {
		s.unheard = false
		s.cond.Broadcast()
	}
}

// partPinned is the end of a drain for a client with a connection of its own: what it waits for
// comes first, for as long as the drain has time. Then the server is told, so that what
// blocks there has ended before the client finds another proxy, and nothing is popped for nobody.
func (s *session) partPinned() {
	s.flush()
	s.mu.Lock()
	s.waitProgress(func() bool { return !s.unheard }, 0)
	s.mu.Unlock()
	s.flush()
	c := s.pinned
	s.unpin()
	select {
	case <-c.Done():
	case <-time.After(unpinTime):
	case <-s.p.closing:
	}
}

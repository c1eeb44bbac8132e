package proxy

import (
	"errors"
	"sync/atomic"
	"time"

	"streamproxy/internal/upstream"
)

// A client that blocks keeps its private connection for as long as it likes. Directly it would have
// opened that for itself, and those who were there before would have kept theirs. Here they share
// some, and give them back after each use: if who comes new could have those to block on, the others
// would be without when the server has no room for more. So a stranger that blocks is served by
// dials while others wait, and leaves one connection for the regulars; and when there is no room no
// stranger gets what they use but for a moment, and hears what the server says to who connects.

// claim is by whom, and for what, a private connection is wanted.
type claim struct {
	regular bool // has had one before
	use     use
}

// use is for how long.
type use uint8

const (
	useBrief       use = iota // for commands that are answered at once
	useTransaction            // until the client ends it
	useHold                   // for as long as the client blocks, or for good
)

const (
	// regularFor is for how long a regular counts that was there.
	regularFor = time.Minute
	// keptFull is how many idle connections of a key stay open, where there is no room for new ones.
	keptFull = 8
)

// useOf is for how long a large command wants one.
func useOf(r Route) use {
	if r.Class == ClassBlocking {
		return useHold
	}
	return useBrief
}

// claim is the session's.
func (s *session) claim(u use) claim { return claim{s.regular, u} }

// lends reports whether who claims a connection so may have one that is idle. The lock is held.
func (s *spares) lends(c claim) bool {
	switch {
	case c.regular:
		s.regulars = time.Now()
		return true
	case c.use != useHold, s.failing():
		return s.lendsAgain(c)
	}
	shared := !s.regulars.IsZero() && time.Since(s.regulars) < regularFor
	return !s.room.full() && len(s.waiting) == 0 && (!shared || len(s.idle) > 1)
}

// lendsAgain reports whether who waits with that claim may have what another gives back. The lock is
// held.
func (s *spares) lendsAgain(c claim) bool {
	switch {
	case c.regular, c.use == useBrief:
		return true
	case s.room.full():
		return false
	}
	return c.use == useTransaction || s.failing() // no dial brings one
}

// failing reports whether dials fail, for want of room or else. The lock is held.
func (s *spares) failing() bool { return s.trouble != nil }

// handOut gives what is idle to those who wait and may have it now. The lock is held.
func (s *spares) handOut() {
	for len(s.idle) > 0 {
		w := s.nextWaiter(false, fromLane(s.idle[len(s.idle)-1].conn))
		if w == nil {
			return
		}
		w.served <- served{conn: s.last()}
	}
}

// room is whether there is room for more connections.
type room struct{ refusal atomic.Pointer[[]byte] }

// full reports whether there is none.
func (r *room) full() bool { return r != nil && r.refusal.Load() != nil }

// noteRoom takes what a dial shows of whether there is room for more connections.
func (p *Proxy) noteRoom(err error) {
	switch {
	case err == nil:
		p.room.refusal.Store(nil)
	case upstream.NoRoom(err):
		refusal := new([]byte) // nobody's words: this process has no descriptors
		var he *upstream.HandshakeError
		if errors.As(err, &he) {
			refusal = &he.Reply
		}
		p.room.refusal.Store(refusal)
		p.discardAll()
	}
}

// turnAway tells a client that has had no reply yet, and gets no connection, what the server says to
// whom it has no room for, and ends it as the server does. It returns false for others, which a server
// would have let in before, and if there is room.
func (s *session) turnAway() bool {
	refusal := s.p.room.refusal.Load()
	if refusal == nil || len(*refusal) == 0 || s.regular || s.weight.past.Load() || s.resigned() {
		return false
	}
	s.answer(*refusal)
	s.ending = true
	return true
}

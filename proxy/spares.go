package proxy

import (
	"slices"
	"sync"
	"time"

	"streamproxy/batcher"
)

// spareIdle is how long a spare beyond those kept ready stays open.
const spareIdle = 2 * time.Second

// spares are the idle private connections of one key, the most recently used last.
type spares struct {
	mu       sync.Mutex
	idle     []spare
	low      int // the fewest there were since idleSince
	dialing  int
	waiting  []*waiter    // for one, the first first; what is idle then is not lent to them
	room     *room        // nil: nobody cares
	regulars time.Time    // when one of them has asked last
	servings int          // how many of them have been served
	trouble  error        // the last dial's
	fed      [2]time.Time // when one of them was served last: strangers, regulars
}

type spare struct {
	conn  *batcher.Conn
	since time.Time
	fresh bool // dialled, and not used since
}

// pop takes the spare that was used last, or nil.
func (s *spares) pop() *batcher.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last()
}

// last is pop with the lock held.
func (s *spares) last() *batcher.Conn { return s.remove(len(s.idle) - 1) }

// first takes the spare that was used the longest time ago, or nil, for a use that may end the
// connection or keep it: none that was a lane a moment ago, see fromLane. The lock is held.
func (s *spares) first() *batcher.Conn {
	return s.remove(slices.IndexFunc(s.idle, func(i spare) bool { return !fromLane(i.conn) }))
}

// unasked is first for a use that may well end the connection, and for who has written on wrote last:
// none on which its last user may be about to WAIT, if there is another, and never wrote. The lock is
// held.
func (s *spares) unasked(wrote *batcher.Conn) *batcher.Conn {
	i := slices.IndexFunc(s.idle, func(i spare) bool {
		return i.conn != wrote && (i.fresh || time.Since(i.since) >= askedFor)
	})
	if i < 0 {
		i = slices.IndexFunc(s.idle, func(i spare) bool { return i.conn != wrote && !fromLane(i.conn) })
	}
	return s.remove(i)
}

// remove takes out the one with that index, or returns nil for -1. The lock is held.
func (s *spares) remove(i int) *batcher.Conn {
	if i < 0 {
		return nil
	}
	c := s.idle[i].conn
	s.idle = slices.Delete(s.idle, i, i+1)
	s.low = min(s.low, len(s.idle))
	return c
}

// askedFor is for how long those who have written on a connection may ask about that, with WAIT, before
// it is ended: on a lane that another's WAIT has made a private connection, or on a private one.
const askedFor = time.Second

func fromLane(c *batcher.Conn) bool { return c.Unshared() < askedFor }

// push makes a connection idle that was given back, or hands it to who has waited longest.
func (s *spares) push(c *batcher.Conn) { s.add(c, false) }

// add is push for a connection that may have been dialled.
func (s *spares) add(c *batcher.Conn, dialled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.nextWaiter(dialled, fromLane(c)); w != nil {
		w.served <- served{conn: c}
		return
	}
	s.idle = append(s.idle, spare{c, time.Now(), dialled})
}

// take takes a particular spare out, and reports whether it was one.
func (s *spares) take(c *batcher.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeNow(c)
}

// takeNow is take with the lock held.
func (s *spares) takeNow(c *batcher.Conn) bool {
	return s.remove(slices.IndexFunc(s.idle, func(i spare) bool { return i.conn == c })) != nil
}

// wantMore reports whether one more should be dialled to have n of them, and books
// that dial.
func (s *spares) wantMore(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle)+s.dialing >= n {
		return false
	}
	s.dialing++
	return true
}

// dialed ends a dial that wantMore has booked.
func (s *spares) dialed() {
	s.mu.Lock()
	s.dialing--
	s.mu.Unlock()
}

// idleSince takes out the spares unused since at, the oldest first, but leaves keep
// of all, and as many more as were in use at some time since the last call: a worker's
// read gives its connection back for the moment until its next read, in which there is
// one too many only by chance.
func (s *spares) idleSince(at time.Time, keep int) (old []*batcher.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < min(s.low, len(s.idle))-keep && s.idle[n].since.Before(at) {
		old = append(old, s.idle[n].conn)
		n++
	}
	s.idle = append(s.idle[:0], s.idle[n:]...)
	s.low = len(s.idle)
	return old
}

func (s *spares) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.idle)
}

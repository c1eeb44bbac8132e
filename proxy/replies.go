package proxy

import (
	"runtime"
	"time"

	"streamproxy/batcher"
)

// Replies leave a session in the order of its commands, whatever answers them.
//
// The order is kept by a list of segments, each standing for consecutive commands
// with one source. Only the head segment appends to the session's output; what
// arrives for a later one is parked in it until everything before has been
// answered. In the common case the list is one segment, the lane's, that grows at
// its end and is consumed from its beginning.

// segment is a number of consecutive commands of a session answered by one
// source. It is the batcher.Sink under which they are submitted.
type segment struct {
	s    *session
	left int // replies still to come
	// open is how many bytes of an incomplete reply stand at the end of the output
	// (head) or of parked.
	open   int
	parked []byte
	// rewrite, if set, turns a complete reply into the one the client gets. Such a
	// segment has one command, and its reply is parked until complete.
	rewrite func(reply []byte) []byte
	// done, if set, is called without a lock when the last reply has been taken;
	// prefix holds the beginning of that reply.
	done   func(prefix []byte, err error)
	prefix []byte
	// tee, if set, collects what arrives, up to teeLimit.
	tee *[]byte
	// waits, if set, is the command that may block which the reply is to.
	waits *exclusive
	// elements, if set, reads along.
	elements *elements
	// handout, if set, is what the reply carries.
	handout parcel
	// mute: a failure is not answered, because something else is said instead.
	mute bool
	// shared: the commands could have gone to the lane, or have.
	shared bool
	next   *segment
	listed bool
	lane   bool // one of the lane beside session.lane
}

const (
	// prefixSize is how much of a reply is shown to done.
	prefixSize = 64
	// teeLimit bounds what is kept of a reply beside its way to the client.
	teeLimit = 4 << 20
)

var _ batcher.Sink = (*segment)(nil)

// plain reports whether nobody but the client is interested in the replies.
func (g *segment) plain() bool { return g.tee == nil && g.done == nil && g.handout == nil }

// list appends g to the session's order. The lock is held.
func (s *session) list(g *segment) {
	g.next, g.listed = nil, true
	if s.tail == nil {
		s.head = g
	} else {
		s.tail.next = g
	}
	s.tail = g
}

// advance removes answered segments from the head and lets the next one speak. The
// lock is held.
func (s *session) advance() {
	for s.head != nil {
		g := s.head
		if g.rewrite == nil || g.left == 0 {
			s.emit(g)
		}
		if g.left > 0 {
			return
		}
		s.head = g.next
		if s.head == nil {
			s.tail = nil
		}
		g.next, g.listed = nil, false
	}
}

// emit moves what is parked in the head segment to the output.
func (s *session) emit(g *segment) {
	b := g.parked
	g.parked = nil
	s.behind -= len(b)
	if len(b) == 0 || s.closed {
		return
	}
	if g.rewrite != nil {
		b = g.rewrite(b)
	}
	s.append(b)
}

// shelve keeps bytes of a segment until what stands before it has been answered. The lock
// is held.
func (s *session) shelve(g *segment, b []byte) {
	g.parked = append(g.parked, b...)
	s.behind += len(b)
	s.chargePiece()
}

// append adds bytes to the output. The lock is held.
func (s *session) append(b []byte) {
	s.appended += uint64(len(b))
	s.out.add(b)
}

// Reply implements batcher.Sink.
func (g *segment) Reply(b []byte, done, open int) {
	s := g.s
	if done > 0 && g.waits != nil && g.withhold(b, done, open) {
		return
	}
	s.mu.Lock()
	if g.done != nil && len(g.prefix) < prefixSize {
		g.prefix = append(g.prefix, b[:min(len(b), prefixSize-len(g.prefix))]...)
	}
	if g.tee != nil && len(*g.tee)+len(b) <= teeLimit {
		*g.tee = append(*g.tee, b...)
	}
	if g.elements != nil {
		g.elements.read(b)
	}
	if g.handout != nil { // dropped at the session's end, if that has come
		s.handouts = append(s.handouts, handout{s.appended, g.handout})
		g.handout = nil
	}
	if done > 0 && g.waits != nil && g.waits.departs(g.prefix) {
		s.departed = true
		s.cutOpen(g) // too short to have been sent
		b = nil
	}
	switch {
	case s.closed:
	case s.head == g && g.rewrite == nil:
		s.append(b)
	default:
		s.shelve(g, b)
	}
	g.open = open
	if s.entered.n > 0 {
		s.letIn()
	}
	if g.shared {
		s.weigh(len(b), done)
	}
	finished := s.answered(g, done)
	over := s.failureOver()
	s.mu.Unlock()
	if over {
		s.endFailure()
	}
	if finished && g.done != nil {
		g.done(g.prefix, nil)
	}
}

// answered books n replies of g and reports whether they were its last. The lock
// is held.
func (s *session) answered(g *segment, n int) (finished bool) {
	if n == 0 {
		return false
	}
	g.left -= n
	if s.outstanding > n {
		s.asked.Add(-s.asked.Load() * int64(n) / int64(s.outstanding))
		s.unbook(s.weight.booked * int64(n) / int64(s.outstanding))
	} else {
		s.asked.Store(0)
		s.unbook(s.weight.booked)
	}
	s.outstanding -= n
	if g.left == 0 && s.head == g {
		s.advance()
	}
	if s.waiters > 0 {
		s.cond.Broadcast()
	}
	return g.left == 0
}

// Fail implements batcher.Sink.
func (g *segment) Fail(n int, err error) {
	s := g.s
	if n == 0 { // a raw connection has ended
		s.upstreamGone()
		return
	}
	s.mu.Lock()
	// Torn: its beginning has left, so nothing may follow, least of all an error.
	torn := !s.cutOpen(g) && s.seal()
	reply := failureReply(err)
	departed := g.waits != nil && g.waits.farewell && g.waits.unblocked // we have ended that connection
	s.departed = s.departed || departed
	for range n {
		switch {
		case s.closed || g.mute || departed:
		case s.head == g && g.rewrite == nil:
			s.append(reply)
		default:
			s.shelve(g, reply)
		}
	}
	s.poisoned.Store(wholePipelines)
	s.letIn()
	finished := s.answered(g, n)
	over := s.failureOver()
	s.mu.Unlock()
	if torn {
		s.shutdown()
	}
	if over {
		s.endFailure()
	}
	if finished && g.done != nil {
		g.done(nil, err)
	}
}

// failureOver reports whether nothing is outstanding any more of a pipeline in which
// a command has failed. The lock is held.
func (s *session) failureOver() bool { return s.outstanding == 0 && s.poisoned.Load() }

// endFailure ends that pipeline if the client has sent no more of it. It is called
// before the client can hear of the failure: once it has, what it sends is a new
// pipeline, and the two could not be told apart.
func (s *session) endFailure() {
	if s.parked.Load() && !s.pending() {
		s.poisoned.Store(false)
	}
}

// cutOpen takes back the beginning of a reply whose end will not come. It reports
// false if a byte of it has left already: then no error can be put in its place.
// The lock is held.
func (s *session) cutOpen(g *segment) bool {
	open := g.open
	g.open = 0
	switch {
	case open == 0 || s.closed:
		return true
	case s.head == g && g.rewrite == nil:
		if open > s.out.size {
			return false
		}
		s.out.cut(open)
		s.appended -= uint64(open)
	default:
		g.parked = g.parked[:len(g.parked)-open]
		s.behind -= open
	}
	return true
}

// Flush implements batcher.Sink.
func (g *segment) Flush() { g.s.flush() }

// Trip implements batcher.Timed.
func (g *segment) Trip(d time.Duration) {
	g.s.mu.Lock()
	g.s.trip = d
	g.s.mu.Unlock()
}

// Pace implements batcher.Sink.
func (g *segment) Pace(limit int64, stall time.Duration) bool {
	return g.s.pace(limit, stall)
}

// localTurn is how many commands are answered here before others have a turn: a pipeline
// of them waits for nobody, and what is read at once holds a thousand.
const localTurn = 8

// answer gives a local reply its place in the order.
func (s *session) answer(reply []byte) {
	if s.local++; s.local%localTurn == 0 {
		runtime.Gosched()
	}
	s.mu.Lock()
	switch {
	case s.closed:
	case s.tail == nil:
		s.append(reply)
		s.chargePiece()
	case s.tail.left == 0: // a local answer that waits already
		s.shelve(s.tail, reply)
	default:
		g := &segment{s: s}
		s.list(g)
		s.shelve(g, reply)
	}
	s.mu.Unlock()
}

package proxy

import (
	"time"

	"streamproxy/batcher"
)

const (
	// maxOutstanding is how many commands of one session may be unanswered before it
	// is not read from. A chunk's worth may come on top.
	maxOutstanding = 4096
	// largeBacklog is the amount of unsent replies from which a session may have only
	// fewOutstanding commands unanswered, so that replies in flight cannot overshoot
	// the client's buffer limit by much.
	largeBacklog   = 1 << 20
	fewOutstanding = 64
)

// submit sends n complete commands, none of which writes, raw being exactly their bytes,
// to the session's lane. It returns when they are queued there or have been answered as failed; it
// blocks while the session is over a limit or without an upstream.
func (s *session) submit(raw []byte, n int) { s.submitAs(nil, raw, stretch{n: n}) }

// ask sends one command to the lane and has its reply rewritten.
func (s *session) ask(raw []byte, rewrite func(reply []byte) []byte) {
	s.submitAs(&segment{s: s, rewrite: rewrite}, raw, stretch{n: 1})
}

// submitAs is submit with a segment of the caller's for the replies; nil is the
// lane's. what tells of the commands. It returns false if they were answered as not sent.
func (s *session) submitAs(special *segment, raw []byte, what stretch) (sent bool) {
	n, write := what.n, what.write
	if n == 0 || !s.room() {
		return false
	}
	mute := special != nil && special.mute
	s.settleIn()
	for {
		if s.failing() {
			s.failUnsent(n, mute)
			return false
		}
		if s.own == nil && (special == nil || special.plain()) && (s.conn == nil && s.laneless() || what.wide || s.heavy(n, len(raw))) {
			x := exclusive{commands: n, write: write, reads: !write}
			if special != nil {
				x.rewrite, x.mute = special.rewrite, special.mute
			}
			if sent, done := s.runApart(raw, x); done {
				return sent
			}
		}
		if s.wasBusy {
			s.waitIdle() // what stands before went over a private connection
		}
		if s.resigned() { // while it waited for something
			s.withdraw()
			s.failUnsent(n, mute)
			return false
		}
		if s.conn == nil && !s.join() {
			s.withdraw()
			s.failUnsent(n, mute)
			return false
		}
		if s.takePlace(n) && s.resigned() {
			s.retract(n)
			continue
		}
		g := s.expect(special, n, len(raw))
		if g == nil {
			s.retract(n)
			continue // poisoned meanwhile
		}
		err := s.pass(g, raw, n)
		if err == nil {
			if s.tx.multi {
				s.tx.queued += n
			}
			if write {
				s.noteWrite()
			}
			return true
		}
		s.unexpect(g, n, len(raw))
		s.waitIdle()      // a connection that takes nothing still answers or fails what it has
		if s.own != nil { // with it went what the server kept for this client
			s.failUnsent(n, mute)
			return false
		}
		s.dropLane()
	}
}

// pass sends n commands over the session's present connection. On one of its own they leave with what
// else is there to be executed now: a system call for each of a client's small commands, here and at
// the server, is what everybody else would wait for.
func (s *session) pass(g *segment, raw []byte, n int) error {
	if s.own == nil {
		return s.conn.Submit(g, &s.seat, raw, n)
	}
	s.collecting = s.own
	return s.own.Collect(g, raw, n)
}

// runApart sends n shared commands over a private connection. done is false if there is none
// to be had now, but a lane: that is better than an error.
func (s *session) runApart(raw []byte, x exclusive) (sent, done bool) {
	x.conn = s.borrowFor(&x)
	switch {
	case x.conn != nil:
		return s.runExclusive(raw, x), true
	case s.failing() || s.ending || s.resigned() || s.conn == nil && s.laneNow().Conn() == nil:
		s.failUnsent(x.commands, x.mute)
		return false, true
	}
	return false, false
}

// expect books n commands of size bytes for the lane in the order of replies. It returns nil if
// an earlier command has failed meanwhile: then these must not run.
func (s *session) expect(special *segment, n, size int) *segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poisoned.Load() {
		return nil
	}
	g := &s.lane
	switch {
	case special != nil:
		g = special
		if !g.listed {
			s.list(g)
		}
	case s.tail == g:
	case !g.listed:
		g.open = 0
		s.list(g)
	case s.tail.lane:
		g = s.tail
	default: // something else was answered in between
		g = &segment{s: s, lane: true, shared: true}
		s.list(g)
	}
	if s.outstanding == 0 && s.p.cfg.Events.Served != nil {
		s.began = time.Now()
	}
	g.left += n
	s.outstanding += n
	s.asked.Add(int64(size))
	return g
}

// unexpect takes back what expect has booked last.
func (s *session) unexpect(g *segment, n, size int) {
	s.mu.Lock()
	g.left -= n
	s.outstanding -= n
	s.asked.Add(-int64(size))
	s.unbook(s.weight.booked)
	s.returnPlace(n)
	s.advance()
	s.mu.Unlock()
}

// failHere answers n commands as not sent, and with them the rest of their
// pipeline: a pipeline is never torn.
func (s *session) failHere(n int) { s.failUnsent(n, false) }

// failUnsent is failHere, which says nothing if mute, and nothing behind the last reply
// of a session that ends: the server's own refusal.
func (s *session) failUnsent(n int, mute bool) {
	s.poisoned.Store(true)
	if s.ending || s.quits() {
		return
	}
	for range n {
		if !mute {
			s.answer(s.notSent())
		}
	}
}

// hangUp ends the session, behind the replies to its earlier commands, in place of a
// reply to a command that changes the client's connection and that nobody could carry
// out. Libraries send those while they connect, and take an error for the server's
// refusal: they go on in the older protocol, in another database, or subscribed to
// nothing. A connection that is lost they make anew; and what such a command does ends
// with the connection, so its end says all that an error would. A client that has been
// dismissed hears that instead: it is about to go anyway.
func (s *session) hangUp() {
	if s.dismissed() {
		s.failHere(1)
		return
	}
	s.ending = true
}

// join puts the session on a lane of its key. It waits for an upstream that is
// down as long as the configuration says.
func (s *session) join() bool {
	s.flushLocal()
	lane := s.laneNow()
	if s.sit(lane.Conn()) {
		return true
	}
	ctx, cancel := s.patienceFor(s.hub)
	defer cancel()
	for {
		c, err := lane.Await(ctx)
		if err != nil {
			s.unserved(err)
			return false
		}
		if s.sit(c) {
			return true
		}
		// It was retired, and is perhaps somebody's own by now, before the lane had it.
		lane.Replace(c)
	}
}

// laneNow is the lane for the session's commands. A newcomer takes the others' where there may be no
// more lanes.
func (s *session) laneNow() *batcher.Lane {
	if !s.weight.past.Load() {
		if l := s.hub.newcomers(); l.Conn() != nil || !s.p.lanesFull() {
			return l
		}
	}
	return s.hub.lane(s.id)
}

// settleIn takes a session off the newcomers' lane that is none any more, as soon as nothing of it
// is in flight there and there is another lane.
func (s *session) settleIn() {
	if !s.newcomer || !s.weight.past.Load() || s.own != nil {
		return
	}
	if s.hub.lane(s.id).Conn() == nil {
		s.hub.offer(s.hub.lane(s.id))
		return
	}
	s.mu.Lock()
	idle := s.outstanding == 0
	s.mu.Unlock()
	if idle {
		if s.newcomer = false; s.wrote == s.conn {
			s.firstWrote, s.laterWrites = s.conn, 0
		}
		s.dropLane()
	}
}

// laneless reports whether the session's key has no lane and may not get one, because
// there are as many as the configuration allows.
func (s *session) laneless() bool {
	full := s.laneNow().Conn() == nil && s.p.lanesFull()
	if full {
		s.p.met(LimitLanes, "served over private connections", "max_lanes", s.p.cfg.MaxLanes)
	}
	return full
}

func (s *session) sit(c *batcher.Conn) bool {
	if c == nil || !c.Join(&s.seat) {
		return false
	}
	s.conn = c
	s.newcomer = !s.weight.past.Load()
	return true
}

// dropLane takes the session off its lane. Nothing of it may be in flight there.
func (s *session) dropLane() {
	if s.conn != nil && s.own == nil {
		s.conn.Leave(&s.seat)
		s.conn = nil
	}
}

// waitIdle blocks until every command of the session has been answered or failed, and
// the private connection of the last one, if it had one, has been settled.
func (s *session) waitIdle() {
	s.flushLocal()
	s.mu.Lock()
	s.waiters++
	for s.outstanding > 0 || s.busy {
		if !s.giveUpReads() {
			s.cond.Wait()
		}
	}
	s.waiters--
	s.mu.Unlock()
}

// room blocks while the session is over its limits of unanswered commands and
// unsent bytes. It returns false when the session is over, or its client has taken
// nothing for too long.
func (s *session) room() bool {
	s.mu.Lock()
	if s.withinLimits() {
		defer s.mu.Unlock()
		return !s.closed
	}
	s.mu.Unlock()
	s.flushLocal() // never wait while holding unsent bytes
	s.mu.Lock()
	s.charge()
	for !s.withinLimits() {
		if !s.awaitLimits() {
			s.mu.Unlock()
			s.p.met(LimitStalled, "closed: took nothing of what it is owed", "client", s.remote())
			s.abort()
			return false
		}
	}
	defer s.mu.Unlock()
	return !s.closed
}

// awaitLimits waits until the session is within its limits, or owes its client so much that
// it waits for that one and not for upstream any more. It returns false if the client has
// taken nothing for too long. The lock is held.
func (s *session) awaitLimits() bool {
	owes := func() bool { return s.unsent() > s.p.cfg.ClientBufferLimit }
	if owes() {
		return s.waitProgress(s.withinLimits, s.p.cfg.ClientStallTimeout)
	}
	return s.awaitTaking(func() bool { return s.withinLimits() || owes() })
}

func (s *session) withinLimits() bool {
	kept := s.kept()
	switch {
	case s.closed:
		return true
	case kept > s.p.cfg.ClientBufferLimit, s.outstanding >= maxOutstanding:
		return false
	case kept > s.allowance(largeBacklog) && s.outstanding >= fewOutstanding:
		return false
	}
	return kept == 0 || !s.p.crowded()
}

package proxy

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/reclaim"
)

// exclusive is one command of a session on a private connection. Earlier commands
// of the session have been answered when it starts; later ones wait for its end.
type exclusive struct {
	conn *batcher.Conn
	// home is the hub the connection goes back to, and which is left then; nil: the
	// session's, which stays.
	home *hub
	cmd  resp.Command // of a patient command: owned, see own
	verb Verb
	// patient: the command may block at the server.
	patient bool
	// dirty, if set, looks at the beginning of the reply and says whether the
	// connection may have been changed by the command.
	dirty func(prefix []byte) bool
	// control: the connection is shared by urgent commands and not the session's.
	control bool
	// kept: the connection is the session's own and stays so.
	kept bool
	// tx: the command ends a transaction, whose place in the quota becomes free.
	tx bool
	// rewrite, if set, turns the reply into the one the client gets.
	rewrite func(reply []byte) []byte
	// reads: nothing is lost if it is given up with its client.
	reads bool
	// loose: its reply may be more than one frame, see loose.go.
	loose bool
	// elements, if set, reads along with the reply.
	elements *elements
	// ahead is how many of the replies are not watch's.
	ahead int
	// mute: its failure is not answered, because something else is said instead.
	mute bool
	// commands is how many there are, of class shared; 0: one of another class.
	commands int
	// write: it, or one of them, may write.
	write bool
	// closeOnLoss: the loss of the connection is the command's success (SHUTDOWN).
	closeOnLoss bool
	// parked and watch are reclaim's interest in a blocked read, see parked.go.
	parked *reclaim.Parked
	watch  *reclaim.Watch

	recalled *atomic.Bool // called back with care, see recall.go
	calling  *sync.Mutex  // of a parked one: held while reclaim's UNBLOCK is under way
	rearm    *rearm       // of a read that survives its connection

	seg *segment
	// Under the session's mu.
	settled bool // the reply has been taken, the connection's fate is decided
	left    bool // the client has left: whoever calls the command back decides
	// Of a command whose client has ended its sending direction, see farewell.go.
	farewell  bool // it is called back
	forsaken  bool // that does not succeed, and nobody waits
	unblocked bool // a call has ended it, or may have
	calls     int  // on their way
	bodyOpen  bool // the command's last byte has not been sent
	// reply is what a read of a group brought, for its give-back.
	reply    []byte
	answered time.Time // when it had come
	// ended is closed when all is over.
	ended chan struct{}
}

// own copies the command out of the reader's buffers.
func own(c resp.Command) resp.Command {
	return resp.Command{
		Raw:  append([]byte(nil), c.Raw...),
		Args: append([]resp.Span(nil), c.Args...),
	}
}

// smallCommand is up to which size a command that blocks costs no more than the client's connection
// for it does.
const smallCommand = 4 << 10

// size is how many bytes of memory the command takes while it blocks, if they are worth counting.
func (e *exclusive) size() int64 {
	n := cap(e.cmd.Raw) + cap(e.cmd.Args)*int(unsafe.Sizeof(resp.Span{}))
	if n <= smallCommand {
		return 0
	}
	return int64(n)
}

// await counts what a command that may block for ever takes until it is answered. The lock is held.
func (s *session) await(n int64) {
	if s.awaits != n {
		s.awaits = n
		s.charge()
	}
}

// runExclusive sends one complete command over a private connection of the
// session's key. It does not wait for the reply. It returns false if the command was
// answered as not sent.
func (s *session) runExclusive(raw []byte, x exclusive) bool {
	borrowed := x.conn == nil
	if borrowed {
		if x.conn = s.borrowFor(&x); x.conn == nil {
			s.failUnsent(max(x.commands, 1), x.mute)
			return false
		}
	}
	if x.patient {
		x.cmd = own(x.cmd)
		x.conn.SetPatient(true)
		x.recalled = new(atomic.Bool)
	}
	e := s.begin(&x)
	var sink batcher.Sink = e.seg
	if e.parked != nil {
		e.calling = new(sync.Mutex)
		sink = &parkedRead{s: s, e: e}
		s.p.wg.Go(func() { s.watchParked(e) })
	}
	if e.patient {
		sink = &recallSink{Sink: sink, e: e, proto: s.key.Proto}
	}
	if borrowed && (e.verb == VerbXRead || e.verb == VerbXReadGroup) {
		sink, raw = s.keepAlive(e, sink)
	}
	if n := e.seg.left; e.conn.Submit(sink, nil, raw, n) != nil {
		e.seg.Fail(n, batcher.ErrNotSent)
		s.flush()
	}
	return true
}

// borrowFor is borrowAs for x, and returns nil as well if the client has reset its connection while
// it waited, and what it sent is nothing but a question to the server.
func (s *session) borrowFor(x *exclusive) *batcher.Conn {
	choose, u := (*spares).last, useBrief
	switch {
	case x.patient: // the one used last another may be about to WAIT on, and what blocks may end it
		choose, u = (*spares).first, useHold
	case x.dirty != nil:
		choose = s.chooseEnding
	}
	c := s.take(choose, u)
	if c != nil && (x.reads || x.patient) && s.isReset() {
		s.hub.giveBack(c)
		return nil
	}
	return c
}

// chooseEnding takes a spare for a command after which it is closed. Where there may be no more
// connections it may be one that somebody has just used.
func (s *session) chooseEnding(idle *spares) *batcher.Conn {
	if c := idle.unasked(s.wrote); c != nil || !s.p.ceiling.full.Load() && !s.p.room.full() {
		return c
	}
	return idle.first()
}

// borrowAs waits until the session has nothing in flight and takes a private
// connection. It returns nil if there is none to be had, or if an earlier command of
// the pipeline has failed: the caller says so, unless the server has.
func (s *session) borrowAs(u use) *batcher.Conn { return s.take((*spares).last, u) }

// take is borrowAs with a way to choose among the spares.
func (s *session) take(choose func(*spares) *batcher.Conn, u use) *batcher.Conn {
	s.waitIdle()
	if s.failing() {
		return nil
	}
	if s.p.ceiling.full.Load() && s.hub.spares.len() == 0 {
		s.p.met(LimitMemory, "command refused: no room for more connections", "client", s.remote())
		s.reason = replyShort
		return nil
	}
	start := time.Now()
	c := s.hub.ready(choose, s.claim(u))
	if c == nil {
		var err error
		if c, err = s.queueFor(choose, u); err != nil {
			s.unserved(err)
			return nil
		}
	}
	s.regular = true
	if f := s.p.cfg.Events.PrivateWait; f != nil {
		f(time.Since(start))
	}
	return c
}

// queueFor waits for a private connection.
func (s *session) queueFor(choose func(*spares) *batcher.Conn, u use) (*batcher.Conn, error) {
	ctx, cancel := s.patienceFor(s.hub)
	defer cancel()
	return s.hub.take(ctx, choose, s.claim(u))
}

// begin books an exclusive command: nothing else of the session is outstanding.
func (s *session) begin(e *exclusive) *exclusive {
	e.ended = make(chan struct{})
	n := max(e.commands, 1)
	g := &segment{s: s, left: n, rewrite: e.rewrite, mute: e.mute, shared: e.commands > 0, elements: e.elements}
	g.done = func(prefix []byte, err error) { s.finish(e, prefix, err) }
	if e.patient {
		g.waits = e
	}
	if e.watch != nil || e.verb == VerbXReadGroup {
		g.tee = &e.reply
	}
	if e.verb == VerbXReadGroup && e.patient {
		g.handout = freshEntries{s: s, e: e}
	}
	e.seg = g
	s.wasBusy = true
	s.mu.Lock()
	s.list(g)
	s.outstanding += n
	s.busy, s.active = true, e
	if e.patient {
		s.since = time.Now()
	}
	s.await(e.size())
	s.mu.Unlock()
	return e
}

// finish is called by the private connection's reader when the command has been
// answered or has failed. The connection is settled before the session goes on, so
// that its next command finds it among the spares.
func (s *session) finish(e *exclusive, prefix []byte, err error) {
	if e.parked != nil || e.watch != nil {
		s.tellReclaim(e, err)
	}
	if e.patient && counts(e.cmd) {
		s.p.asked.answered(e.conn)
	}
	s.mu.Lock()
	e.settled, e.answered = true, time.Now()
	left, broken, called := e.left, err != nil || e.bodyOpen, e.calls > 0
	wrote := e.mayHaveWritten(prefix, err)
	s.mu.Unlock()
	if e.tx {
		<-s.p.txSlots
		if !broken {
			_ = e.conn.SetOwner(nil) // a dead one is seen below
		}
	}
	dirty := !broken && e.dirty != nil && e.dirty(prefix)
	switch {
	case e.control, e.kept, left:
	case broken, dirty:
		e.conn.Close()
	case e.loose:
		h := s.hub
		s.p.wg.Go(func() { s.p.giveBackProven(h, e.conn) })
	case called:
		s.giveBackLater(e)
	default:
		s.giveBack(e)
	}
	if e.home != nil {
		s.p.leaveHub(e.home)
	}
	s.mu.Lock()
	if wrote {
		s.wroteOn, s.perhaps = e.conn, e.loose
	}
	s.busy, s.active = false, nil
	s.await(0)
	s.torn = s.torn || e.tx && dirty
	s.gone = s.gone || s.torn
	wake := s.suspended || s.torn
	s.suspended = false
	s.cond.Broadcast()
	s.mu.Unlock()
	close(e.ended)
	if err != nil && e.closeOnLoss {
		s.abort()
	}
	if wake {
		s.wakeReader()
	}
}

// tellReclaim ends reclaim's interest in a read, and waits until nothing is on its
// way any more that could call back whoever uses the connection next.
func (s *session) tellReclaim(e *exclusive, err error) {
	reply := e.reply
	if err != nil || len(reply) >= teeLimit {
		reply = nil
	}
	if e.watch != nil {
		e.watch.Seen(withoutFirst(reply, e.ahead))
	}
	if e.parked != nil {
		e.parked.End(reply)
		e.calling.Lock()
		s.mu.Lock()
		e.settled = true
		s.mu.Unlock()
		e.calling.Unlock()
	}
}

// mayHaveWritten judges by the outcome: what found nothing, or was refused, wrote
// nothing. Where the outcome is unknown the connection is lost, and WAIT says so. The
// session's mu is held.
func (e *exclusive) mayHaveWritten(prefix []byte, err error) bool {
	switch {
	case !e.write:
		return false
	case e.commands > 1, e.loose && err == nil: // the reply is not the whole truth
		return true
	case err != nil:
		return !batcher.SafeToRetry(err)
	case e.bodyOpen, len(prefix) == 0, prefix[0] == '-', prefix[0] == '_':
		return false
	}
	return len(prefix) < 3 || string(prefix[1:3]) != "-1"
}

// giveBack returns a clean private connection to the spares.
func (s *session) giveBack(e *exclusive) { s.homeOf(e).takeBack(e) }

// homeOf is the hub that e has its connection of.
func (s *session) homeOf(e *exclusive) *hub {
	if e.home != nil {
		return e.home
	}
	return s.hub
}

// takeBack is giveBack for what e had.
func (h *hub) takeBack(e *exclusive) {
	if e.patient {
		e.conn.SetPatient(false)
	}
	h.giveBack(e.conn)
}

// always is the dirty of commands after which a connection is not used again.
func always([]byte) bool { return true }

// unlessError is the dirty of commands that change nothing if they are refused.
func unlessError(prefix []byte) bool { return len(prefix) == 0 || prefix[0] != '-' }

// runUnknown runs a command that the proxy does not understand, or whose replies are
// loose. What the former does to its connection is not known either: unless the server
// refuses it, the connection is not used again.
func (s *session) runUnknown(cmd resp.Command, route Route) {
	x := exclusive{loose: true, write: route.Write}
	if !route.Loose {
		x.dirty = unlessError
	}
	s.runExclusive(cmd.Raw, x)
}

// runOnce runs a command over a private connection that is closed afterwards: for
// forms of state commands that the server will most likely refuse.
func (s *session) runOnce(cmd resp.Command) {
	s.runExclusive(cmd.Raw, exclusive{dirty: always})
}

// setUpOnce is runOnce for forms of those that set up the connection: where there is no reply the
// session ends, see hangUp.
func (s *session) setUpOnce(raw []byte) {
	s.waitIdle()
	if !s.failing() {
		s.runExclusive(raw, exclusive{dirty: always, mute: true})
		s.waitIdle()
	}
	if s.failing() {
		s.hangUp()
	}
}

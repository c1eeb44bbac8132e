package proxy

import (
	"strconv"
	"strings"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
)

// A pinned session owns a private connection until it leaves: what the server sends passes
// untouched, and what the client sends passes command by command, see sift.go. That is right
// for any command whatsoever. RESET ends the state for which the session was pinned, so the
// session returns to the lane behind it.

// pipe passes the bytes of a session's own connection to its session, and tells it
// of the connection's end.
type pipe struct {
	s *session
	// hold is what may be the beginning of resetEnd, between RESET and the end that
	// follows it.
	hold []byte
	// masked is what may be the beginning of a reply to a stand-in, see sift.go.
	masked []byte
}

var _ batcher.Sink = (*pipe)(nil)

// The end of a pinned connection that is reset: QUIT is sent behind RESET, and the
// server closes behind its reply. So the two replies are known by their place, which
// is the end of everything. A script can forge the words, but not the place; and the
// replies before need not be counted, which is not possible where SUBSCRIBE within a
// transaction puts any number of pushes in the place of one reply.
const (
	resetReply = "+RESET\r\n"
	quitReply  = "+OK\r\n"
	resetEnd   = resetReply + quitReply
)

// skipCommand stands directly before a RESET that the server does not answer.
const skipCommand = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n"

// skips recognises CLIENT REPLY SKIP.
func skips(raw []byte) bool { return strings.EqualFold(string(raw), skipCommand) }

// Reply implements batcher.Sink.
func (r *pipe) Reply(b []byte, _, _ int) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.standIns > 0 || len(r.masked) > 0 {
		var found int
		b, found = r.unmask(s.p.denials, b)
		s.standIns -= found
	}
	if s.resetting || s.nonsense {
		b = r.holdEnd(b)
	}
	s.heard()
	if !s.closed {
		s.append(b)
	}
}

// holdEnd returns what can be passed on, and holds the longest end that resetEnd may
// begin with, or quitReply where RESET is skipped, or nonsenseReply.
func (r *pipe) holdEnd(b []byte) []byte {
	r.hold = append(r.hold, b...)
	n := min(len(r.hold), len(nonsenseReply))
	for !r.mayEnd(string(r.hold[len(r.hold)-n:])) {
		n--
	}
	pass, hold := r.hold[:len(r.hold)-n], r.hold[len(r.hold)-n:]
	r.hold = append([]byte(nil), hold...)
	return pass
}

// mayEnd reports whether the last replies may begin like that.
func (r *pipe) mayEnd(with string) bool {
	if r.s.nonsense {
		return strings.HasPrefix(nonsenseReply, with)
	}
	return strings.HasPrefix(resetEnd, with) || r.s.resetSkipped && strings.HasPrefix(quitReply, with)
}

// Fail implements batcher.Sink: the connection has ended.
func (r *pipe) Fail(int, error) {
	s := r.s
	s.mu.Lock()
	r.hold = append(r.hold, r.masked...)
	done := s.resetting && (string(r.hold) == resetEnd || s.resetSkipped && string(r.hold) == quitReply)
	switch {
	case done:
		r.hold = r.hold[:len(r.hold)-len(quitReply)]
	case s.nonsense && string(r.hold) == nonsenseReply:
		r.hold = nil
	case s.nonsense: // it was lost before, or has words of its own
		s.lastWord = nil
	}
	if !s.closed {
		s.append(r.hold)
	}
	wake := false
	if done {
		s.busy, s.wasReset = false, true
		wake, s.suspended = s.suspended, false
		s.cond.Broadcast()
	}
	s.mu.Unlock()
	if !done {
		s.upstreamGone()
		return
	}
	s.flush()
	if wake {
		s.wakeReader()
	}
}

// Flush implements batcher.Sink.
func (r *pipe) Flush() { r.s.flush() }

// Pace implements batcher.Sink.
func (r *pipe) Pace(limit int64, stall time.Duration) bool { return r.s.pace(limit, stall) }

// pin gives the session a connection for good, cmd being the first bytes for it. If
// there is none to be had, the session ends.
func (s *session) pin(cmd []byte) {
	s.pacePin()
	c := s.take(s.choosePinned, useHold)
	if c == nil || !s.lendName(c) || c.SetRaw(&pipe{s: s}) != nil {
		s.hangUp()
		return
	}
	s.dropLane()
	s.pinTo(c, cmd)
}

// choosePinned takes the spare on which the session has written last, if it is one: a
// WAIT will pass on the connection without being looked at. Else not the one used last,
// on which another may be about to WAIT.
func (s *session) choosePinned(idle *spares) *batcher.Conn {
	if s.wrote != nil && idle.takeNow(s.wrote) {
		return s.wrote
	}
	return idle.first()
}

// lendName gives a connection the client's name instead of ours, so that the server
// says what the client expects. It is not sent in one piece with the client's own
// command: SCRIPT DEBUG refuses to be part of a pipeline. Whether the server agrees
// does not matter; false is a connection that is lost.
func (s *session) lendName(c *batcher.Conn) bool {
	name := ""
	if n := s.name.Load(); n != nil {
		name = *n
	}
	w := &waitSink{left: 1, done: make(chan struct{})}
	if c.Submit(w, nil, resp.AppendCommand(nil, "CLIENT", "SETNAME", name), 1) != nil {
		return false
	}
	select {
	case <-w.done:
		return !c.Dead()
	case <-s.p.closing:
		return false
	}
}

// pinTo makes c, on which bytes pass already, the session's connection.
func (s *session) pinTo(c *batcher.Conn, cmd []byte) {
	s.pinned = c
	s.private.Store(c.ID())
	if s.pinSize == 0 { // else cmd is the beginning of a large one
		s.scan.Reset()
	}
	s.partial = false
	s.skipping = skips(cmd)
	if len(cmd) > 0 {
		_ = c.WriteBody(cmd, false) // its reader tells of its end
	}
}

// expectReset holds further commands until RESET has been answered, which it never is
// if the connection has ended meanwhile.
func (s *session) expectReset() {
	s.wasBusy = true
	s.mu.Lock()
	s.resetting, s.resetSkipped, s.busy = true, s.skipping, !s.gone
	s.since = time.Now()
	s.mu.Unlock()
}

// afterReset returns a pinned session to the lane, as it was in the beginning.
func (s *session) afterReset() {
	s.pinned, s.silent, s.tx = nil, false, tx{} // its end is what brought us here
	s.private.Store(0)
	s.unpinned()
	s.scan.Reset()
	s.partial = false
	s.restart()
}

// tracking runs CLIENT TRACKING. The id of a REDIRECT names a session; the server
// knows the connection that session has to itself, if it has one.
func (s *session) tracking(cmd resp.Command) {
	raw := cmd.Raw
	for i := 3; i+1 < cmd.Len(); i++ {
		if !fold(cmd.Arg(i), "redirect") {
			continue
		}
		if id, here := virtualID(cmd.Arg(i + 1)); here {
			raw = replaceArg(cmd, i+1, strconv.FormatInt(s.p.serverID(id), 10))
		}
		break
	}
	if s.own != nil {
		s.pinOwn(raw)
		return
	}
	s.pin(raw)
}

// upstreamGone is called when the session's own connection has ended: what it has
// brought is delivered, and then the client's connection ends too. A client that
// went on would not know what the server has forgotten.
func (s *session) upstreamGone() {
	s.mu.Lock()
	s.gone = true
	s.busy, s.unheard = false, false
	s.cond.Broadcast()
	s.mu.Unlock()
	s.wakeReader()
}

// upstreamEnded is the reader's side of upstreamGone.
func (s *session) upstreamEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		s.ending = true
		if !s.closed {
			s.append(s.lastWord)
		}
		s.lastWord = nil
	}
	return s.gone
}

// finishPinned passes the end of a client's sending direction on. What the server says until it ends
// the connection is the client's, which may have asked for it before.
func (s *session) finishPinned() {
	if s.pinned == nil || !s.readEOF || s.pinned.CloseWrite() != nil {
		return
	}
	s.mu.Lock()
	s.waitProgress(func() bool { return s.gone || s.wasReset }, s.p.cfg.UpstreamTimeout)
	s.mu.Unlock()
}

// endReset is finishPinned for a client that waits for a RESET, which may stand behind what blocks:
// the server answers it now or never.
func (s *session) endReset() {
	s.mu.Lock()
	waits := s.readEOF && s.resetting
	s.mu.Unlock()
	if waits {
		_ = s.pinned.CloseWrite() // one that is closed has ended, and has told so
	}
}

// unpinTime is how long the server has to close a connection whose client left.
const unpinTime = 5 * time.Second

// unpin ends the pinned connection of a client that has left. The sending side is
// closed first, so that the server sees an end and not a reset.
func (s *session) unpin() {
	c := s.pinned
	if c == nil {
		return
	}
	if c.CloseWrite() != nil {
		c.Close()
		return
	}
	s.p.wg.Go(func() {
		select {
		case <-c.Done():
		case <-time.After(unpinTime):
			c.Close()
		case <-s.p.closing:
			c.Close()
		}
	})
}

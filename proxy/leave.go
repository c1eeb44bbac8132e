package proxy

import (
	"context"
	"errors"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
	"streamproxy/reclaim"
)

// leave settles what the session has under way on private connections when its
// client is gone.
func (s *session) leave() {
	s.dropBody(true)
	s.unpin()
	s.mu.Lock()
	e := s.active
	if e != nil && !e.settled && e.reads {
		defer e.conn.Close() // nobody wants the rest, and it may be much
	}
	if e != nil && (e.settled || !e.patient) {
		e = nil
	}
	if e != nil {
		e.left = true
		e.tx = e.kept
	}
	s.mu.Unlock()
	if e != nil {
		if e.kept { // its end, too, is its leaver's business
			s.own, s.conn = nil, nil
		}
		s.p.wg.Go(func() { s.callBack(e) })
	}
}

// giveUpReads ends the private connection over which a client that is gone had only asked to read, as
// leave does, for a reader that waits for the replies. It reports whether it has; the lock is held, but
// not meanwhile.
func (s *session) giveUpReads() bool {
	e := s.active
	if e == nil || !e.reads || e.settled || e.left {
		return false
	}
	if gone := s.closed || s.left.Load() && s.isReset(); !gone {
		return false
	}
	e.left = true // what becomes of the connection is decided
	s.mu.Unlock()
	e.conn.Close()
	s.mu.Lock()
	return true
}

// leftPatience is for how long the reply to a command that does not block is waited for when its client
// has ended the connection, and keptPatience where the client may read on, and what it sent behind the
// command would fail with the connection, which is its own.
const (
	leftPatience = time.Second
	keptPatience = 5 * time.Second
)

// hurry begins to look after what is under way for a client that has ended its connection. Of what
// nothing has come for a while is left to the server as the client has left it here: it reads the end
// behind the command. A server that does not answer it at all would keep the connection from others until the
// timeout. The lock is held.
func (s *session) hurry() {
	if s.urging == nil && !s.settled {
		s.urged, s.urging = s.active, time.AfterFunc(leftPatience, s.urge)
	}
}

// urge looks whether the command under way is the one that was when hurry or urge looked last.
func (s *session) urge() {
	s.mu.Lock()
	e := s.active
	late := e != nil && e == s.urged && !e.patient && !e.control && !s.writing
	if s.urged = e; !s.settled {
		s.urging.Reset(leftPatience)
	}
	s.mu.Unlock()
	if late && e.conn.Silent(s.patienceWith(e)) {
		s.endSending(e)
	}
}

func (s *session) patienceWith(e *exclusive) time.Duration {
	if e.kept && !s.resigned() {
		return keptPatience
	}
	return leftPatience
}

// unhurry ends that, with the session. The lock is held.
func (s *session) unhurry() {
	s.settled = true
	if s.urging != nil {
		s.urging.Stop()
	}
}

// unblockPatience bounds one attempt to call a blocked command back.
const unblockPatience = 5 * time.Second

// callBack ends a blocked command whose client has left. Its connection is never
// closed under it while upstream is healthy: the server may have handed it an
// entry already, which would then be nobody's. CLIENT UNBLOCK makes the server
// answer; what the answer brought is given back at the session's end, see freshEntries.
func (s *session) callBack(e *exclusive) {
	if !s.calledBack(e) {
		s.unblock(e)
	}
	select {
	case <-e.ended:
	case <-s.p.closing:
		s.connOf(e).Close()
		return
	}
	s.awaitLanding(e)
	switch {
	case e.control: // a WAIT that was a lane's last command: emptied takes that connection, and nobody else
	case e.kept || e.conn.Retired():
		e.conn.Close()
	default:
		s.giveBack(e)
	}
}

// calledBack reports whether a command is being called back already.
func (s *session) calledBack(e *exclusive) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.farewell
}

// forsakenAfter is how many calls have to fail before nothing more is expected of the next: a
// connection over which it is asked may be lost, and another is there at once. One that nobody
// answers is enough.
const forsakenAfter = 4

// unblock repeats CLIENT UNBLOCK, with growing pauses, until the command has
// ended.
func (s *session) unblock(e *exclusive) {
	pause := upstream.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	for n := 1; ; n++ {
		if s.connOf(e).ID() == 0 {
			s.endSending(e) // no id to name
			return
		}
		err := s.recall(e)
		switch {
		case upstream.Refused(err), upstream.Denied(err), errors.Is(err, errStranger):
			// Not allowed to, or it might hit another: the read runs to its BLOCK. Without one the end of our
			// sending side has to do.
			if waitsForEver(e.cmd) {
				s.endSending(e)
			} else {
				s.forsakeClient(e)
			}
			return
		case err != nil && !upstream.Busy(err):
			if n >= forsakenAfter || errors.Is(err, context.DeadlineExceeded) {
				s.forsakeClient(e)
			}
			s.p.checkNow() // a server that is silent for long is not waited for, see giveUp
		}
		select {
		case <-e.ended:
			return
		case <-s.p.closing:
			return
		case <-time.After(pause.Delay(n)):
		}
	}
}

// endSending lets the server read the end of a connection on which a command is under way; a blocked one
// is answered to nobody then.
func (s *session) endSending(e *exclusive) {
	if c := s.aim(e); c != nil {
		_ = c.CloseWrite() // a closed one has ended
		s.landed(e, true)
	}
}

// returnUnread gives back what the reply to a read has brought, of which its client has not
// seen a byte: its delivery must not count.
func (s *session) returnUnread(e *exclusive) {
	ctx, cancel := s.p.within(s.p.cfg.UpstreamTimeout)
	defer cancel()
	var err error
	if s.p.streams != nil {
		err = s.p.streams.ReturnUnread(ctx, s.streamIdentity(), e.cmd, e.reply, e.answered)
	} else {
		err = reclaim.ReturnUnread(ctx, calls{s.p}, s.streamIdentity(), e.cmd, e.reply, e.answered)
	}
	if err != nil {
		s.p.log.Warn("entries read for a client that left could not be given back", "error", err)
	}
}

// waitSink drops replies and tells when all have come.
type waitSink struct {
	left int
	done chan struct{}
}

var _ batcher.Sink = (*waitSink)(nil)

func (w *waitSink) take(n int) {
	if w.left -= n; w.left == 0 && n > 0 {
		close(w.done)
	}
}

// Reply implements batcher.Sink.
func (w *waitSink) Reply(_ []byte, done, _ int) { w.take(done) }

// Flush implements batcher.Sink.
func (w *waitSink) Flush() {}

// Fail implements batcher.Sink.
func (w *waitSink) Fail(n int, _ error) { w.take(n) }

// Pace implements batcher.Sink.
func (w *waitSink) Pace(int64, time.Duration) bool { return true }

// waitsForEver reports whether a blocking command has no timeout of its own.
func waitsForEver(cmd resp.Command) bool {
	if cmd.Len() == 0 {
		return true
	}
	if _, ms, ok := blockOption(cmd); ok {
		return ms == 0
	}
	_, ms, ok := blockTimeout(cmd)
	return !ok || ms == 0
}

package proxy

import (
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

// unblockPatience bounds one attempt to call a blocked command back.
const unblockPatience = 5 * time.Second

// callBack ends a blocked command whose client has left. Its connection is never
// closed under it while upstream is healthy: the server may have handed it an
// entry already, which would then be nobody's. CLIENT UNBLOCK makes the server
// answer; what the answer brought is given back.
func (s *session) callBack(e *exclusive) {
	sure := s.unblock(e) // every attempt has been answered
	select {
	case <-e.ended:
	case <-s.p.closing:
		s.connOf(e).Close()
		return
	}
	s.returnEntries(e)
	if !sure || e.kept || e.recalled != nil && e.recalled.Load() || e.conn.Retired() {
		e.conn.Close() // a late UNBLOCK must not hit whoever would use it next
		return
	}
	s.giveBack(e)
}

// unblock repeats CLIENT UNBLOCK, with growing pauses, until the command has
// ended. It returns false if an attempt may still be on its way.
func (s *session) unblock(e *exclusive) (sure bool) {
	sure = true
	pause := upstream.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	for n := 1; ; n++ {
		conn := s.connOf(e)
		if conn.ID() == 0 {
			_ = conn.CloseWrite() // no id to name: the server reads the end and answers nobody
			return false
		}
		err := error(nil)
		if !conn.Dead() { // its id may be another's at the next run of the server
			ctx, cancel := s.p.within(unblockPatience)
			err = e.recall(ctx, s.p, conn.ID())
			cancel()
		}
		switch {
		case upstream.Refused(err):
			// Not allowed to: the read runs to its BLOCK. Without one the end of our
			// sending side has to do.
			if waitsForEver(e.cmd) {
				_ = conn.CloseWrite()
				return false
			}
			return sure
		case err != nil && !upstream.Busy(err):
			s.p.checkNow() // a server that is silent for long is not waited for, see giveUp
			sure = false
		}
		select {
		case <-e.ended:
			return sure
		case <-s.p.closing:
			return false
		case <-time.After(pause.Delay(n)):
		}
	}
}

// returnEntries gives back what an abandoned XREADGROUP has read: nobody has seen
// it, so its delivery must not count.
func (s *session) returnEntries(e *exclusive) {
	if len(e.reply) == 0 || e.fresh != nil && e.fresh.written.Load() {
		return
	}
	commands, n, told := s.unread(e)
	if n == 0 {
		return
	}
	w := &waitSink{left: n, done: make(chan struct{})}
	if e.conn.Submit(w, nil, commands, n) != nil {
		s.p.log.Warn("entries read for a client that left could not be given back", "streams", n)
		return
	}
	select {
	case <-w.done:
		told()
	case <-s.p.closing:
	}
}

// unread asks reclaim for what gives back the reply to a read, and what to call then.
func (s *session) unread(e *exclusive) (commands []byte, n int, told func()) {
	if s.p.streams != nil {
		return s.p.streams.Unread(s.streamIdentity(), e.cmd, e.reply)
	}
	commands, n = reclaim.Unread(e.cmd, e.reply)
	return commands, n, func() {}
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

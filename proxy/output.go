package proxy

import (
	"syscall"
	"time"

	"streamproxy/internal/rawio"
)

// holdBack is the size up to which an incomplete reply is kept back until it is
// complete: if its source dies before that, an error can still take its place.
const holdBack = 64 << 10

// writePiece is how much is written at a time to a client that is slow, so that
// its progress can be seen.
const writePiece = 64 << 10

// flush writes what the client may get now. It makes one attempt that does not
// block; what the socket does not take is left to a writer started for it.
func (s *session) flush() {
	var left []handout
	var total, trip time.Duration
	s.mu.Lock()
	behind := s.writing
	if behind { // its writer is: what has come meanwhile counts
		s.charge()
	}
	for !s.writing && !s.closed {
		out := s.takeOutput()
		if out == nil {
			break
		}
		s.mu.Unlock()
		n, err := s.tryWrite(out.b)
		if err != nil {
			s.abort()
			out.release()
			s.mu.Lock()
			s.stopWriting()
			break
		}
		s.sent(n)
		s.mu.Lock()
		left = append(left, s.leftNow(n)...)
		if n < len(out.b) {
			s.inWrite = len(out.b) - n
			s.charge()
			s.p.wg.Go(func() { s.writeOut(out, n) })
			break
		}
		s.writing, s.inWrite, s.writeRoom = false, 0, 0
		if s.charged != s.stays() { // it was slow, or between a reply and its flush, when it was charged
			s.charge()
		}
		if took := s.servedNow(); took > 0 {
			total, trip, s.trip = took, s.trip, 0
		}
		out.release()
		if s.waiters > 0 {
			s.progress++
			s.cond.Broadcast()
		}
	}
	s.mu.Unlock()
	written(left)
	if behind {
		s.p.shed()
	}
	if f := s.p.cfg.Events.Served; f != nil && total > 0 {
		f(total, max(total-trip, 0))
	}
}

// servedNow is how long the commands took that are answered now, if upstream's part of
// it was measured, else 0. The lock is held.
func (s *session) servedNow() time.Duration {
	if s.trip == 0 || s.outstanding > 0 {
		return 0
	}
	return time.Since(s.began)
}

func (s *session) sent(n int) {
	if n > 0 && !s.spoken.Load() {
		s.spoken.Store(true)
	}
	if f := s.p.cfg.Events.Sent; f != nil && n > 0 {
		f(n)
	}
}

// takeOutput takes over the output, less an incomplete reply that is held back,
// and marks the session as being written to. The lock is held.
func (s *session) takeOutput() *buffer {
	held := 0
	if g := s.head; g != nil && g.rewrite == nil && g.open <= holdBack {
		held = min(g.open, s.out.size)
	}
	out := s.out.take(held)
	if out != nil {
		s.writing, s.inWrite, s.writeRoom = true, len(out.b), cap(out.b)
	}
	return out
}

// writeOut is the session's writer: it writes out from byte n on, and what has
// come meanwhile, and ends when there is nothing left.
func (s *session) writeOut(out *buffer, n int) {
	for {
		piece := out.b[n:min(len(out.b), n+writePiece)]
		m, err := s.nc.Write(piece)
		s.sent(m)
		s.mu.Lock()
		left := s.leftNow(m)
		s.mu.Unlock()
		written(left)
		if err != nil {
			s.abort()
			s.mu.Lock()
			s.stopWriting()
			s.mu.Unlock()
			return
		}
		n += m
		s.mu.Lock()
		s.inWrite -= m
		s.progress++
		if n == len(out.b) {
			out.release()
			n = 0
			if out = s.takeOutput(); out == nil || s.closed {
				s.writing, s.inWrite, s.writeRoom = false, 0, 0
				s.insists = false
				s.charge()
				s.cond.Broadcast()
				s.mu.Unlock()
				return
			}
		}
		s.charge()
		s.cond.Broadcast()
		s.mu.Unlock()
	}
}

// stopWriting says that nobody writes any more, as the client is gone. The lock is held.
func (s *session) stopWriting() {
	s.writing, s.inWrite, s.writeRoom = false, 0, 0
	s.cond.Broadcast()
}

// unsent is how many bytes the client has not taken. The lock is held.
func (s *session) unsent() int64 {
	return int64(s.inWrite) + int64(s.out.size)
}

// kept is how many bytes are kept for the client: what it has not taken, and what waits
// for the answers before it. The lock is held.
func (s *session) kept() int64 { return s.unsent() + int64(s.behind) }

// takes is how many bytes of memory that costs. The lock is held.
func (s *session) takes() int64 { return int64(s.writeRoom + s.out.room + s.behind) }

// chargePiece is charge for answers that are made faster than they are written: it tells
// of them a piece at a time. The lock is held.
func (s *session) chargePiece() {
	if s.takes()+s.stays()-s.charged >= writePiece {
		s.charge()
	}
}

// pace blocks while the client has more than limit bytes to take, but not once the proxy
// hangs up: whoever ends a connection waits for the reader that is held here. It returns
// false when the client is gone, or when it has taken nothing for stall (0: see awaitPace).
func (s *session) pace(limit int64, stall time.Duration) bool {
	s.mu.Lock()
	if s.unsent() > limit && !s.closed {
		s.charge()
		if !s.awaitPace(limit, stall) {
			s.mu.Unlock()
			s.p.met(LimitStalled, "closed: took nothing of what it is owed", "client", s.remote())
			s.abort()
			return false
		}
	}
	defer s.mu.Unlock()
	return !s.closed
}

// awaitPace is pace's wait. It returns false if the client has taken nothing for stall, or, where
// that is 0, for as long as one may that is over its limit. The lock is held.
func (s *session) awaitPace(limit int64, stall time.Duration) bool {
	ok := func() bool { return s.unsent() <= s.allowance(limit) || s.p.stopping() }
	if stall <= 0 {
		return s.awaitTaking(ok)
	}
	if s.waitProgress(ok, stall) {
		return true
	}
	s.lookWhetherInsists()
	return ok()
}

// waitProgress waits until ok or the session is closed. It returns false if the
// client took nothing for stall (0: no limit). The lock is held.
func (s *session) waitProgress(ok func() bool, stall time.Duration) bool {
	s.waiters++
	defer func() { s.waiters-- }()
	if stall <= 0 {
		for !ok() && !s.closed {
			s.cond.Wait()
		}
		return true
	}
	timer := time.AfterFunc(stall, func() {
		s.mu.Lock() // so that it cannot fall between the check and the wait
		defer s.mu.Unlock()
		s.cond.Broadcast()
	})
	defer timer.Stop()
	seen, since := s.progress, time.Now()
	for !ok() && !s.closed {
		if s.progress != seen {
			seen, since = s.progress, time.Now()
		}
		left := stall - time.Since(since)
		if left <= 0 {
			return false
		}
		timer.Reset(left)
		s.cond.Wait()
	}
	return true
}

// tryWrite makes one attempt to write b without waiting and says how much the
// socket took. A connection without a descriptor takes nothing here.
func (s *session) tryWrite(b []byte) (int, error) {
	if s.rc == nil {
		return 0, nil
	}
	s.wbuf, s.wn, s.werr = b, 0, nil
	if err := s.rc.Write(s.wfn); err != nil {
		return 0, err
	}
	s.wbuf = nil
	return s.wn, s.werr
}

// writeReady is tryWrite's callback; it never asks to wait.
func (s *session) writeReady(fd uintptr) bool {
	for {
		n, err := rawio.Write(int(fd), s.wbuf)
		switch err {
		case nil:
			s.wn = n
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
		default:
			s.werr = err
		}
		return true
	}
}

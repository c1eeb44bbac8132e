package proxy

import (
	"errors"
	"io"
	"net"
	"time"
)

// The end of a drain, as one session sees it: its blocked command is called back, what
// its client has said already is served, or refused if the drain's time is over, and
// then the connection ends. A client that goes on all the same is told once more that
// its command was not sent; what it says after that nobody reads.

// dismissed is how a session stands towards the end of a drain.
type dismissed uint8

const (
	staying  dismissed = iota
	leaving            // what the client has said is served, unless it would block
	refusing           // nothing is served any more
)

const (
	// dryPause is the silence after which a client is taken to have said all.
	dryPause = 10 * time.Millisecond
	// nextPause is how long a client that has just been answered has for its next
	// command, so that it is told of the end instead of finding it.
	nextPause = 300 * time.Millisecond
	// hearTime and hearBytes bound what is heard of a client that does not stop.
	hearTime  = 500 * time.Millisecond
	hearBytes = 1 << 20
)

// dismiss ends a session in an orderly way: its blocked command, if it has one, is
// called back, so that its client gets the nil it would get at its timeout. late: the
// drain's time is over.
func (s *session) dismiss(late bool) {
	s.mu.Lock()
	e := s.active
	parked := e != nil && e.patient && !e.settled
	s.gone, s.dismissal = true, leaving
	if late {
		s.dismissal = refusing
	}
	s.cond.Broadcast() // see pause
	s.mu.Unlock()
	if parked {
		s.p.wg.Go(func() { s.unblock(e) })
	}
	_ = s.nc.SetReadDeadline(past) // a closed connection is on its way out already
}

// sayGoodbye is the reader's part of dismiss. It does nothing for a session that stays.
func (s *session) sayGoodbye() {
	s.mu.Lock()
	s.parting = s.dismissal
	expecting := s.outstanding > 0
	s.mu.Unlock()
	switch {
	case s.parting == staying, s.body != nil:
		return
	case s.pinned != nil:
		s.partPinned()
		return
	}
	if s.parting == refusing {
		expecting = expecting || time.Since(time.Unix(0, s.lastWork.Load())) < s.p.cfg.DrainIdle
	}
	s.hear(dryPause)
	s.runHeld()
	if expecting && s.awaitAnswers() {
		s.hear(nextPause)
		s.runHeld()
	}
}

// awaitAnswers waits until the client has been given all that it asked for. It reports
// false if it is not there to ask for more.
func (s *session) awaitAnswers() bool {
	s.flush()
	s.mu.Lock()
	s.waitProgress(func() bool { return s.outstanding == 0 }, 0)
	closed := s.closed
	s.mu.Unlock()
	s.flush()
	return !closed && !s.readEOF && s.readErr == nil && !s.ending
}

// hear executes, or refuses, what the client has said, until it is silent: for first
// before its first word, and then for dryPause.
func (s *session) hear(first time.Duration) {
	chunk := s.p.takeChunk()
	defer s.p.putChunk(chunk)
	end := time.Now().Add(hearTime)
	for pause, heard := first, 0; heard < hearBytes && time.Now().Before(end); pause = dryPause {
		if s.ending || s.readEOF || s.readErr != nil || s.full() || s.cutOff() {
			return
		}
		if s.nc.SetReadDeadline(time.Now().Add(pause)) != nil {
			return
		}
		n, err := s.nc.Read(chunk.b)
		if n > 0 {
			s.opened()
			s.received(n)
			s.accept(chunk.b[:n])
			heard += n
		}
		var ne net.Error
		switch {
		case errors.Is(err, io.EOF):
			s.readEOF = true
		case errors.As(err, &ne) && ne.Timeout():
			return
		case err != nil:
			s.readErr = err
		}
	}
}

// stays reports whether commands of a class make a client stay, which one that is
// dismissed cannot.
func stays(c Class) bool {
	return c == ClassBlocking || c == ClassSubscriber || c == ClassForGood
}

// failing reports whether commands are refused: an earlier one of the pipeline has
// failed, or the session is over.
func (s *session) failing() bool { return s.parting == refusing || s.poisoned.Load() }

// notSent is the reply to a command that is refused.
func (s *session) notSent() []byte {
	if s.dismissed() {
		return replyStopping
	}
	if s.reason != nil {
		return s.reason
	}
	return replyNotSent
}

// dismissed reports whether the drain wants the session to go. A reader that waited for an
// upstream meanwhile has not seen it yet.
func (s *session) dismissed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dismissal != staying
}

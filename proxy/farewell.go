package proxy

import (
	"bytes"

	"streamproxy/internal/resp"
)

// A client may end its sending direction behind a command that may block, and read on: `printf … | nc`.
// A server that has something for the command answers it, and what stands behind it, before it looks at
// the client's end. Only under a command that is blocked the client is gone. Which of the two it is the
// server alone knows, and the command may still be on its way. So it is called back, and its client
// kept until it has ended: a reply that was not provoked by the call is the client's, and what it has
// sent behind the command is executed. Any other ends the session. A command that answers with numbers
// does so too when it is called back; what CLIENT UNBLOCK is answered tells then.

// bidFarewell calls back the command that may block and is under way, its client having ended its
// sending direction. It returns the command, nil if there is none.
func (s *session) bidFarewell() *exclusive {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.active
	if e == nil || !e.patient || waitsForNobody(e.cmd) {
		return nil
	}
	if !e.farewell && !e.settled {
		e.farewell = true
		s.p.wg.Go(func() { s.unblock(e) })
	}
	return e
}

// waitsForNobody reports whether a command is a WAIT for no replica. It never blocks, and a call that
// comes late would cost the connection, which a later WAIT asks about the same writes.
func waitsForNobody(cmd resp.Command) bool {
	if !counts(cmd) {
		return false
	}
	for i := 1; i < cmd.Len()-1; i++ {
		if string(cmd.Arg(i)) != "0" {
			return false
		}
	}
	return true
}

// lastBlocking is bidFarewell where the client may not have ended anything.
func (s *session) lastBlocking() *exclusive {
	if !s.readEOF {
		return nil
	}
	return s.bidFarewell()
}

// forsakeClient says that a command cannot be called back now, or ever. Its client, which may well be
// gone, is not kept until it ends by itself.
func (s *session) forsakeClient(e *exclusive) {
	s.mu.Lock()
	e.forsaken = e.farewell
	s.cond.Broadcast()
	s.mu.Unlock()
	s.wakeReader()
}

// forsaken reports whether the command under way is one that cannot be called back.
func (s *session) forsaken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active != nil && s.active.forsaken
}

// landed notes what a call was answered that aim has booked.
func (s *session) landed(e *exclusive, hit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.calls--
	e.unblocked = e.unblocked || hit
	s.cond.Broadcast()
}

// awaitLanding waits until no call is on its way: the connection may then be another's.
func (s *session) awaitLanding(e *exclusive) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e.calls > 0 {
		s.cond.Wait()
	}
}

// giveBackLater gives the connection of a command back that has ended while it was called back.
func (s *session) giveBackLater(e *exclusive) {
	home := s.homeOf(e) // the session may have another, then
	s.p.wg.Go(func() {
		s.awaitLanding(e)
		home.takeBack(e)
	})
}

// withhold keeps the end of a number back while a call is on its way that may have provoked it.
func (g *segment) withhold(b []byte, done, open int) bool {
	s, e := g.s, g.waits
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.farewell || e.settled || e.calls == 0 || !counts(e.cmd) {
		return false
	}
	e.settled = true // nobody calls it back any more: its connection may be another's soon
	b = append([]byte(nil), b...)
	s.p.wg.Go(func() {
		s.awaitLanding(e)
		g.Reply(b, done, open)
		g.Flush()
	})
	return true
}

// departs reports whether a reply, which begins with prefix, says that its command was blocked when its
// client ended its sending direction. The lock is held.
func (e *exclusive) departs(prefix []byte) bool {
	switch {
	case !e.farewell:
		return false
	case counts(e.cmd):
		return e.unblocked
	}
	return isNull(prefix) || bytes.HasPrefix(prefix, []byte("$-")) || bytes.HasPrefix(prefix, []byte(unblockedText))
}

// seeTaken is for a command that has ended, or cannot be called back. It gives back the entries of a
// read whose client has turned out to be gone for good: its socket took them, and answered with a reset.
func (s *session) seeTaken(e *exclusive) {
	if e == nil || e.verb != VerbXReadGroup || !s.calledBack(e) {
		return
	}
	s.mu.Lock()
	waits := !e.settled && !e.forsaken && !s.closed
	s.mu.Unlock()
	if waits {
		<-e.ended // its reply has come
	}
	s.flush()
	s.mu.Lock()
	s.waitProgress(func() bool { return s.unsent() == 0 }, s.p.cfg.ClientStallTimeout)
	taken := e.settled && !s.closed && s.unsent() == 0
	s.mu.Unlock()
	if taken && s.isReset() {
		s.returnUnread(e)
	}
}

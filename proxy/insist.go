package proxy

import "time"

// Most clients that owe reading will read when they have time, and until then nothing more is got
// for them. Some never do unless they are read from first: they send the whole of a long pipeline
// before they look at an answer. When the sockets between are full of answers one way and of commands
// the other, both sides would wait for each other for ever. Redis keeps all the answers. So does the
// proxy, up to --client-buffer-limit and while no more than half of --memory-limit is in use, for a
// client that has taken nothing for a while and has more to be read. It insists until it has taken
// all it is owed.

const (
	// insistAfter is how long a client that owes reading has to take nothing to be looked at.
	insistAfter = 100 * time.Millisecond
	// insistAtMost is how long it is left alone between looks: who has stopped reading may begin to send.
	insistAtMost = 32 * insistAfter
)

// awaitTaking waits until ok, or until the session is closed, and looks meanwhile whether its
// client insists. It returns false if that is owed more than it may be, and has taken nothing for too
// long. The lock is held, but for those looks.
func (s *session) awaitTaking(ok func() bool) bool {
	seen, stalled := s.progress, time.Duration(0)
	for wait := insistAfter; ; wait = min(2*wait, insistAtMost) {
		wait = min(wait, s.p.cfg.ClientStallTimeout)
		if s.waitProgress(ok, wait) {
			return true
		}
		if s.progress != seen {
			seen, stalled = s.progress, 0
		}
		stalled += wait
		if s.unsent() > s.p.cfg.ClientBufferLimit && stalled >= s.p.cfg.ClientStallTimeout {
			return false
		}
		s.lookWhetherInsists()
	}
}

// lookWhetherInsists takes a client that has more to be read, and takes nothing, for one that will
// not before that is read. The lock is held, but for the look.
func (s *session) lookWhetherInsists() {
	if s.insists {
		return
	}
	s.mu.Unlock()
	more := s.pending()
	s.mu.Lock()
	if more && s.unsent() > 0 {
		s.insists = true
		s.cond.Broadcast() // its reader may wait, and upstream's
	}
}

// allowance is how many bytes may be kept for a client, where limit is the rule. The lock is held.
func (s *session) allowance(limit int64) int64 {
	if s.insists && !s.p.halfFull() {
		return max(limit, s.p.cfg.ClientBufferLimit)
	}
	return limit
}

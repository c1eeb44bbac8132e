package proxy

import (
	"sync/atomic"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
)

// body is a large command whose bytes are passed on as they come.
type body struct {
	e *exclusive // nil: the bytes are dropped, the command has been answered
	// meddles: reclaim is to hear of it, before its end once more, which may be much later.
	meddles bool
}

// beginLarge takes over a command whose header announces more than largeCommand.
// b is what has arrived of it, all of it already scanned.
func (s *session) beginLarge(b []byte) int {
	cmd := resp.Command{Raw: b, Args: s.scan.Args()}
	route := Route{Class: ClassUnknown}
	if cmd.Len() > 0 {
		route = s.p.table.Load().Classify(cmd)
	}
	s.count(route.Class)
	s.scan.StopRecording()
	s.body = &body{}
	switch {
	case !s.authed:
		s.answer(noAuthReply)
	case s.failing() && setsUp(route):
		s.hangUp()
	case s.refuse():
	case route.Class == ClassDenied:
		s.deny(cmd)
	case saysWho(route.Verb):
		s.refuseLongLogin()
	case route.Class == ClassShared, route.Class == ClassBlocking, route.Class == ClassUnknown:
		s.openBody(b, cmd, route)
	default: // a state command of this size makes no sense; the server may say so
		s.body = nil
		s.pinSize = len(b)
		if s.own != nil {
			s.pinOwn(b)
		} else {
			s.pin(b)
		}
		s.ending = s.ending || s.pinned == nil // the rest of it is no command
	}
	return len(b)
}

// withhold reports whether the command under way has to wait for more of it: it may be a small
// one, or it is not known yet which one it is, and whether it may pass.
func (s *session) withhold() bool {
	words := 1
	if s.p.denials != nil {
		words = 2
	}
	return s.scan.Declared() <= largeCommand || s.scan.Inline() ||
		len(s.scan.Args()) < words && s.scan.Size() < largeCommand
}

// openBody starts streaming a large command over a private connection.
func (s *session) openBody(b []byte, cmd resp.Command, route Route) {
	c := s.own
	if c == nil {
		c = s.borrowAs(useOf(route))
	} else {
		s.waitIdle()
	}
	if c == nil {
		s.failHere(1)
		return
	}
	x := exclusive{conn: c, kept: c == s.own, verb: route.Verb, bodyOpen: true, write: route.Write && !s.tx.multi}
	if s.tx.multi {
		s.tx.queued++
		s.tx.write = s.tx.write || route.Write
	}
	switch route.Class {
	case ClassBlocking:
		x.patient, x.cmd, x.recalled = true, own(cmd), new(atomic.Bool)
		c.SetPatient(true)
	case ClassUnknown:
		x.dirty = unlessError
		s.tx.odd = s.tx.odd || s.own != nil
	}
	if s.body.meddles = s.ownMeddles(cmd, route); s.body.meddles {
		s.unseen()
	}
	e := s.begin(&x)
	s.body.e = e
	var sink batcher.Sink = e.seg
	if e.patient {
		sink = &recallSink{Sink: sink, e: e, proto: s.key.Proto}
	}
	if c.OpenBody(sink) != nil {
		s.body.e = nil
		e.seg.Fail(1, batcher.ErrNotSent)
		return
	}
	s.writeBody(b, false)
}

// streamOn passes on what of b belongs to the large command, and returns how much
// that is.
func (s *session) streamOn(b []byte) int {
	n, done, err := s.scan.Scan(b)
	if err != nil {
		s.dropBody(true)
		s.waitIdle()
		s.protocolError(err)
		return len(b)
	}
	s.writeBody(b[:n], done)
	if done {
		s.body, s.partial = nil, false
	}
	return n
}

func (s *session) writeBody(b []byte, last bool) {
	e := s.body.e
	if e == nil {
		return
	}
	if last {
		if s.body.meddles {
			s.unseen()
		}
		s.mu.Lock()
		e.bodyOpen = false
		s.mu.Unlock()
	}
	if e.conn.WriteBody(b, last) != nil {
		s.body.e = nil // its failure has been or is being answered
	}
}

// dropBody gives up a large command in the middle. That costs its connection and
// nobody else's. mute: the client is told something else.
func (s *session) dropBody(mute bool) {
	if s.body == nil || s.body.e == nil {
		return
	}
	e := s.body.e
	s.body.e = nil
	s.mu.Lock()
	e.seg.mute = mute
	s.mu.Unlock()
	e.conn.Close()
}

package proxy

import (
	"time"

	"github.com/tidwall/redcon"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
)

// WAIT and WAITAOF ask how far the writes of their own connection have come. The
// server remembers the offset of each connection's last write, so the question has
// to travel where the session's last write did: any other connection answers at
// once, and wrongly.

const textWaitLost = "ERR streamproxy: the connection that carried your last write is lost; WAIT cannot answer"

// waitCommand runs WAIT or WAITAOF over the connection of the session's last write.
// On a lane it is the last command: nobody may queue behind it. Offsets only grow,
// so what others wrote there meanwhile makes the answer late at most, never wrong.
func (s *session) waitCommand(cmd resp.Command, route Route) {
	s.waitIdle()
	if s.refuse() {
		return
	}
	c := s.wrote
	x := exclusive{patient: true, cmd: cmd, verb: route.Verb}
	switch {
	case c == nil: // nothing written: any connection may say so
		s.runExclusive(cmd.Raw, x)
	case c.Dead():
		s.answer(redcon.AppendError(nil, textWaitLost))
	case s.hub.spares.take(c):
		x.conn = c
		s.runExclusive(cmd.Raw, x)
	default:
		s.waitOnLane(c, x)
	}
}

// waitOnLane sends WAIT as the last command of a lane. The retired lane comes back
// to the spares when it has been answered.
func (s *session) waitOnLane(c *batcher.Conn, x exclusive) {
	x.conn, x.cmd, x.control = c, own(x.cmd), true
	e := s.begin(x)
	if c == s.conn {
		s.dropLane()
	}
	if c.SubmitLast(e.seg, e.cmd.Raw) == nil {
		return
	}
	// It is retired or in somebody's hands; in a moment it is a spare, or lost.
	s.unbegin(e)
	s.waitForSpare(c, x)
}

// waitSparePause is how often a connection in use is looked for among the spares.
const waitSparePause = 2 * time.Millisecond

func (s *session) waitForSpare(c *batcher.Conn, x exclusive) {
	deadline := time.Now().Add(s.p.cfg.UpstreamTimeout)
	for time.Now().Before(deadline) && s.p.pause(waitSparePause) {
		if c.Dead() {
			break
		}
		if s.hub.spares.take(c) {
			x.control = false
			s.runExclusive(x.cmd.Raw, x)
			return
		}
	}
	s.answer(redcon.AppendError(nil, textWaitLost))
}

// unbegin takes back an exclusive command that could not be submitted.
func (s *session) unbegin(e *exclusive) {
	s.mu.Lock()
	e.seg.left = 0
	s.outstanding--
	s.busy, s.active = false, nil
	s.advance()
	s.mu.Unlock()
}

package proxy

import (
	"slices"
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

var waitLostReply = redcon.AppendError(nil, textWaitLost)

// waitCommand runs WAIT or WAITAOF over the connection of the session's last write.
// On a lane it is the last command: nobody may queue behind it. Offsets only grow,
// so what others wrote there meanwhile makes the answer late at most, never wrong.
func (s *session) waitCommand(cmd resp.Command, route Route) {
	s.waitIdle()
	if s.refuse() {
		return
	}
	if s.quits() { // while its write was on the way
		return
	}
	s.mu.Lock()
	s.takeNote()
	s.mu.Unlock()
	c := s.wrote
	x := exclusive{patient: true, cmd: cmd, verb: route.Verb}
	if !s.askEarlier(&x) {
		return
	}
	switch {
	case s.own != nil && (c == nil || c == s.own):
		x.conn, x.kept = s.own, true
		s.runExclusive(x.cmd.Raw, x)
	case c == nil: // nothing written: any connection may say so
		s.runExclusive(x.cmd.Raw, x)
	case c.Dead():
		s.answer(waitLostReply)
	default:
		s.waitOn(c, x)
	}
}

// noteWrite takes note that the session's present connection has been sent a write. What
// is queued there writes with EXEC.
func (s *session) noteWrite() {
	if s.tx.multi {
		s.tx.write = true
		return
	}
	if s.wasBusy { // before this one
		s.mu.Lock()
		s.takeNote()
		s.mu.Unlock()
	}
	s.wrote, s.earlier = s.conn, nil
	if s.firstWrote == nil {
		return
	}
	// One that is lost can answer nothing any more, as any lane before the present one.
	if s.laterWrites++; s.laterWrites > maxUncertain || s.firstWrote.Dead() {
		s.firstWrote = nil
	} else if s.firstWrote != s.conn {
		s.earlier = []*batcher.Conn{s.firstWrote}
	}
}

// maxUncertain is how many commands that may write, and may have failed, a session has to send on
// its lane before what it wrote as a newcomer, on another, is not asked about any more.
const maxUncertain = 16

// takeNote takes note of the connection on which a private command has written. The lock
// is held.
func (s *session) takeNote() {
	c := s.wroteOn
	switch {
	case c == nil:
		return
	case !s.perhaps:
		s.earlier = nil
	case s.wrote != nil && s.wrote != c:
		s.earlier = append(slices.DeleteFunc(s.earlier, func(e *batcher.Conn) bool { return e == c }), s.wrote)
		if len(s.earlier) > maxEarlier { // the first carried what was no script's
			s.earlier = slices.Delete(s.earlier, 1, 2)
		}
	}
	s.wrote, s.wroteOn = c, nil
}

// waitOn sends WAIT over c as soon as that can be had, as a spare or as a lane. One that
// somebody keeps, or blocks for long, is lost.
func (s *session) waitOn(c *batcher.Conn, x exclusive) {
	x.conn = c
	home, sent := s.untilHad(c, &x.cmd, func() bool { return s.waitOnLane(c, x) })
	switch {
	case home != nil:
		x.home = home
		s.runExclusive(x.cmd.Raw, x)
	case !sent && !s.quits():
		s.answer(waitLostReply)
	}
}

// untilHad waits until c is the session's, as a spare of the hub that it has to go back to, or send, which
// takes a lane, has succeeded. A connection in other hands becomes either in a moment, or when another's
// WAIT has been answered. The time in line is taken off cmd's. It gives up when c is lost or stays in other
// hands for as long as an upstream is waited for, and the command itself would wait, and when nobody is
// there any more to hear the answer.
func (s *session) untilHad(c *batcher.Conn, cmd *resp.Command, send func() bool) (home *hub, sent bool) {
	start, asked := time.Now(), *cmd
	try := func() bool {
		*cmd = remaining(asked, time.Since(start))
		if home = s.p.takeSpare(c); home == nil {
			sent = send()
		}
		return home != nil || sent
	}
	if c.Dead() || c.Raw() || try() {
		return home, sent
	}
	ctx, cancel := s.patienceOf(s.p.cfg.UpstreamWait + min(waitTime(asked), longestLine))
	defer cancel()
	t := s.p.asked.join(c)
	for !c.Dead() && !c.Raw() && ctx.Err() == nil && !try() {
		select {
		case home = <-t.home:
			gone := time.Since(start)
			if *cmd = remaining(asked, gone); gone >= waitTime(asked) && s.p.asked.wasAsked(t) {
				*cmd = atOnce(*cmd)
			}
			return home, false
		case <-ctx.Done():
		case <-time.After(waitLook): // what was between a spare and a lane at both looks
		}
	}
	if late := s.p.asked.leave(c, t); late != nil {
		late.giveBack(c)
		s.p.leaveHub(late)
	}
	return home, sent
}

// longestLine bounds how much longer a WAIT stands in line for its own sake.
const longestLine = time.Minute

// takeSpare takes c out of the spares, whose ever they are: the session may have
// changed its database or protocol since it wrote. It returns the hub that c has to
// go back to, which is in use until the caller leaves it; nil if c is no spare.
func (p *Proxy) takeSpare(c *batcher.Conn) *hub {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hubs {
		if h.spares.take(c) {
			p.countUsers(h, 1)
			return h
		}
	}
	return nil
}

// waitOnLane sends WAIT as the last command of a lane. The retired lane comes back
// to the spares when it has been answered. It returns false if c is no lane.
func (s *session) waitOnLane(c *batcher.Conn, x exclusive) bool {
	x.cmd, x.control = own(x.cmd), true
	e := s.begin(&x)
	if c == s.conn {
		s.dropLane()
	}
	if c.SubmitLast(e.seg, e.cmd.Raw) == nil {
		return true
	}
	s.unbegin(e)
	return false
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

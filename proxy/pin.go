package proxy

import (
	"strconv"
	"strings"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
)

// A pinned session owns a private connection until it leaves: bytes pass in both
// directions untouched. That is right for any command whatsoever. Both directions
// are framed on the side, for one purpose: RESET ends the state for which the
// session was pinned, so the session returns to the lane behind it.

// pipe passes the bytes of a session's own connection to its session, and tells it
// of the connection's end.
type pipe struct {
	s    *session
	scan resp.ReplyScanner
	lost bool   // what comes is not framed replies (PSYNC); it is only passed
	line []byte // the beginning of the frame under way
	skip int    // replies to what the proxy itself has sent first
	// Between RESET and the end that follows it: what is held back, whether that is a
	// whole +OK, and whether the frame before it was RESET's reply.
	hold        []byte
	okay, reset bool
}

var _ batcher.Sink = (*pipe)(nil)

// The end of a pinned connection that is reset: QUIT is sent behind RESET, and the
// server closes behind its reply. So the two replies are known by their place. A
// script can forge the one of RESET, but not the end.
const (
	resetReply = "+RESET\r\n"
	quitReply  = "+OK\r\n"
)

// Reply implements batcher.Sink.
func (r *pipe) Reply(b []byte, _, _ int) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	pass := b
	if r.skip > 0 || s.resetting {
		pass = r.sift(b)
	} else {
		r.frames(b, nil)
	}
	if !s.closed {
		s.append(pass)
	}
}

// frames keeps count of frames over b. each, if not nil, gets every part.
func (r *pipe) frames(b []byte, each func(part []byte, done bool)) {
	for len(b) > 0 && !r.lost {
		n, done, err := r.scan.Scan(b)
		if err != nil {
			r.lost = true
			break
		}
		if len(r.line) < len(resetReply) {
			r.line = append(r.line, b[:min(n, len(resetReply)-len(r.line))]...)
		}
		if each != nil {
			each(b[:n], done)
		}
		b = b[n:]
		if done {
			r.line = r.line[:0]
		}
	}
	if each != nil && len(b) > 0 {
		each(b, false)
	}
}

// sift returns what of b the client gets, now that something of it may be ours.
func (r *pipe) sift(b []byte) (pass []byte) {
	r.frames(b, func(part []byte, done bool) {
		if r.okay { // another frame follows: it was not the end
			pass = append(pass, r.hold...)
			r.hold, r.okay, r.reset = r.hold[:0], false, false
		}
		r.hold = append(r.hold, part...)
		switch {
		case done && r.skip > 0:
			r.skip--
			r.hold = r.hold[:0]
		case done && r.s.resetting && r.scan.Size() == int64(len(quitReply)) && string(r.line) == quitReply:
			r.okay = true
		case done:
			r.reset = r.scan.Size() == int64(len(resetReply)) && string(r.line) == resetReply
			pass = append(pass, r.hold...)
			r.hold = r.hold[:0]
		case r.skip == 0 && (!r.s.resetting || !strings.HasPrefix(quitReply, string(r.line))):
			pass = append(pass, r.hold...)
			r.hold = r.hold[:0]
		}
	})
	return pass
}

// Fail implements batcher.Sink: the connection has ended.
func (r *pipe) Fail(int, error) {
	s := r.s
	s.mu.Lock()
	done := s.resetting && r.okay && r.reset
	wake := false
	if done {
		s.busy, s.wasReset = false, true
		wake, s.suspended = s.suspended, false
		s.cond.Broadcast()
	} else if !s.closed {
		s.append(r.hold)
	}
	s.mu.Unlock()
	switch {
	case !done:
		s.upstreamGone()
	case wake:
		_ = s.nc.SetReadDeadline(past) // a closed connection needs no waking
	}
}

// Flush implements batcher.Sink.
func (r *pipe) Flush() { r.s.flush() }

// Pace implements batcher.Sink.
func (r *pipe) Pace(limit int64, stall time.Duration) bool { return r.s.pace(limit, stall) }

// pin gives the session a connection for good, cmd being the first bytes for it.
func (s *session) pin(cmd []byte) {
	c := s.borrow()
	if c == nil {
		return
	}
	if c.SetRaw(&pipe{s: s, skip: 1}) != nil {
		s.failHere(1)
		return
	}
	s.dropLane()
	s.pinTo(c, append(s.nameRequest(), cmd...))
}

// nameRequest gives a connection the client's name instead of ours, so that the
// server says what the client expects. Its reply is not the client's.
func (s *session) nameRequest() []byte {
	name := ""
	if n := s.name.Load(); n != nil {
		name = *n
	}
	return resp.AppendCommand(nil, "CLIENT", "SETNAME", name)
}

// pinTo makes c, on which bytes pass already, the session's connection.
func (s *session) pinTo(c *batcher.Conn, cmd []byte) {
	s.pinned = c
	s.private.Store(c.ID())
	s.scan.Reset()
	s.partial = false
	if len(cmd) > 0 {
		_ = c.WriteBody(cmd, false) // its reader tells of its end
	}
}

// passOn sends bytes of a pinned session, up to and including a RESET, and returns
// how many. The end of its connection is told by its reader, so an error needs no
// handling here.
func (s *session) passOn(b []byte) int {
	n, reset := s.untilReset(b)
	if reset {
		s.expectReset()
		b = resp.AppendCommand(append([]byte(nil), b[:n]...), "QUIT")
		_ = s.pinned.WriteBody(b, false)
		return n
	}
	_ = s.pinned.WriteBody(b[:n], false)
	return n
}

// untilReset frames what the client sends and returns where to stop: behind a RESET
// or at the end of b.
func (s *session) untilReset(b []byte) (n int, reset bool) {
	for n < len(b) && !s.unframed {
		m, done, err := s.scan.Scan(b[n:])
		if err != nil { // the server will say what it thinks of it
			s.unframed = true
			break
		}
		n += m
		s.pinSize += m
		if !done {
			break
		}
		whole := s.pinSize == m // else it is longer than this word or comes in crumbs
		s.pinSize = 0
		cmd := resp.Command{Raw: b[n-m : n], Args: s.scan.Args()}
		if whole && cmd.Len() == 1 && fold(cmd.Arg(0), "reset") {
			return n, true
		}
	}
	return len(b), false
}

// expectReset holds further commands until RESET has been answered.
func (s *session) expectReset() {
	s.wasBusy = true
	s.mu.Lock()
	s.resetting, s.busy = true, true
	s.mu.Unlock()
}

// afterReset returns a pinned session to the lane, as it was in the beginning.
func (s *session) afterReset() {
	s.pinned = nil // its end is what brought us here
	s.private.Store(0)
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
	s.busy = false
	s.cond.Broadcast()
	s.mu.Unlock()
	_ = s.nc.SetReadDeadline(past) // a closed connection needs no waking
}

// upstreamEnded is the reader's side of upstreamGone.
func (s *session) upstreamEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		s.ending = true
	}
	return s.gone
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

package proxy

import (
	"strconv"
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
	lost bool // what comes is not framed replies (PSYNC); it is only passed
	line []byte
}

var _ batcher.Sink = (*pipe)(nil)

// resetReply is the frame behind which a session that sent RESET is itself again.
const resetReply = "+RESET\r\n"

// Reply implements batcher.Sink.
func (r *pipe) Reply(b []byte, _, _ int) {
	s := r.s
	reset := r.watch(b)
	s.mu.Lock()
	if !s.closed {
		s.append(b)
	}
	wake := false
	if reset && s.resetting {
		s.busy, s.wasReset = false, true
		wake, s.suspended = s.suspended, false
	}
	s.mu.Unlock()
	if wake {
		_ = s.nc.SetReadDeadline(past) // a closed connection needs no waking
	}
}

// watch frames b and reports whether the reply to RESET ends in it.
func (r *pipe) watch(b []byte) (reset bool) {
	for len(b) > 0 && !r.lost {
		n, done, err := r.scan.Scan(b)
		if err != nil {
			r.lost = true
			return reset
		}
		if len(r.line) < len(resetReply) {
			r.line = append(r.line, b[:min(n, len(resetReply)-len(r.line))]...)
		}
		b = b[n:]
		if done {
			reset = reset || r.scan.Size() == int64(len(resetReply)) && string(r.line) == resetReply
			r.line = r.line[:0]
		}
	}
	return reset
}

// Flush implements batcher.Sink.
func (r *pipe) Flush() { r.s.flush() }

// Fail implements batcher.Sink.
func (r *pipe) Fail(int, error) { r.s.upstreamGone() }

// Pace implements batcher.Sink.
func (r *pipe) Pace(limit int64, stall time.Duration) bool { return r.s.pace(limit, stall) }

// pin gives the session a connection for good, cmd being the first bytes for it.
func (s *session) pin(cmd []byte) {
	c := s.borrow()
	if c == nil {
		return
	}
	if c.SetRaw(&pipe{s: s}) != nil {
		s.failHere(1)
		return
	}
	s.dropLane()
	s.pinTo(c, cmd)
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
	n := s.untilReset(b)
	_ = s.pinned.WriteBody(b[:n], false)
	return n
}

// untilReset frames what the client sends and returns where to stop: behind a RESET
// or at the end of b.
func (s *session) untilReset(b []byte) int {
	for n := 0; n < len(b) && !s.unframed; {
		m, done, err := s.scan.Scan(b[n:])
		if err != nil { // the server will say what it thinks of it
			s.unframed = true
			break
		}
		start := n
		n += m
		s.pinSize += m
		if !done {
			break
		}
		cmd := resp.Command{Args: s.scan.Args()}
		if s.pinSize == m && !s.scan.Inline() { // it lies whole in b
			cmd.Raw = b[start:n]
			if cmd.Len() == 1 && fold(cmd.Arg(0), "reset") {
				s.pinSize = 0
				s.expectReset()
				return n
			}
		}
		s.pinSize = 0
	}
	return len(b)
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
	c := s.pinned
	s.pinned = nil
	s.private.Store(0)
	_ = c.SetOwner(nil) // a dead one has told already
	c.Close()
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

package proxy

import (
	"time"

	"streamproxy/batcher"
)

// A pinned session owns a private connection until it leaves: bytes pass in both
// directions untouched. That is right for any command whatsoever.

// rawSink passes the bytes of a pinned connection to its session.
type rawSink struct{ s *session }

var _ batcher.Sink = rawSink{}

// Reply implements batcher.Sink.
func (r rawSink) Reply(b []byte, _, _ int) {
	r.s.mu.Lock()
	if !r.s.closed {
		r.s.append(b)
	}
	r.s.mu.Unlock()
}

// Flush implements batcher.Sink.
func (r rawSink) Flush() { r.s.flush() }

// Fail implements batcher.Sink.
func (r rawSink) Fail(int, error) { r.s.upstreamGone() }

// Pace implements batcher.Sink.
func (r rawSink) Pace(limit int64, stall time.Duration) bool { return r.s.pace(limit, stall) }

// pin gives the session a connection for good, b being the first bytes for it.
func (s *session) pin(b []byte) {
	c := s.borrow()
	if c == nil {
		return
	}
	if c.SetRaw(rawSink{s}) != nil {
		s.failHere(1)
		return
	}
	s.dropLane()
	s.pinned = c
	s.passOn(b)
}

// passOn sends bytes of a pinned session. The end of its connection is told by its
// reader, so an error needs no handling here.
func (s *session) passOn(b []byte) int {
	_ = s.pinned.WriteBody(b, false)
	return len(b)
}

// upstreamGone is called when a pinned connection has ended: what it has brought is
// delivered, and then the client's connection ends too.
func (s *session) upstreamGone() {
	s.mu.Lock()
	s.gone = true
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

package proxy

import (
	"errors"
	"io"
	"runtime"
)

// readPlain is the reader of a connection without a descriptor. It cannot ask whether
// there is something to read, so it holds a buffer all the time, and an idle client
// should not cost a large one: it takes a chunk only while there is more to read.
func (s *session) readPlain() error {
	small := make([]byte, smallChunk)
	buf := small
	var more *chunk
	defer func() {
		if more != nil {
			s.p.putChunk(more)
		}
	}()
	for {
		s.park()
		if err := s.awaitRoom(); err != nil || s.readErr != nil {
			return err
		}
		n, err := s.nc.Read(buf)
		s.parked.Store(false)
		if n > 0 {
			s.opened()
			s.received(n)
			s.accept(buf[:n])
			if n >= smallChunk || s.wire != nil && s.wire.idle > fewIdle {
				runtime.Gosched() // as behind each chunk of others; there may be more at once
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			s.readEOF = true
			return nil
		case errors.Is(err, errIdleRecords):
			s.distrust("session", err)
			return err
		case err != nil || s.ending:
			return err
		case n == smallChunk && more == nil:
			more = s.takeChunk()
			buf = more.b
		case more != nil && (n < smallChunk || !s.pending()):
			s.p.putChunk(more)
			more, buf = nil, small
		}
	}
}

// awaitRoom waits, while no more may be read or kept, for the wake-up that ends that state,
// or for the client's end. Both are found at the socket below TLS; other connections
// without a descriptor are tests' and are not held back.
func (s *session) awaitRoom() error {
	gone := s.givenUp
	switch {
	case s.below == nil:
		return nil
	case s.full() && s.mayRead():
		s.stepAside() // it is read from until it has no more
		return nil
	case s.full():
	case s.squeezed():
		gone = peerReset
	default:
		return nil
	}
	return s.below.Read(func(fd uintptr) bool { return s.hungUp(gone(int(fd))) })
}

package proxy

import (
	"errors"
	"io"
)

// plainChunk is what the reader of a connection without a descriptor waits with. It
// cannot ask whether there is something to read, so it holds a buffer all the time,
// and an idle client should not cost a large one.
const plainChunk = 4 << 10

// readPlain is the reader of a connection without a descriptor. It takes a large
// buffer only for as long as the small one would be filled.
func (s *session) readPlain() error {
	small := make([]byte, plainChunk)
	buf := small
	var large *[chunkSize]byte
	defer func() {
		if large != nil {
			chunks.Put(large)
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
			s.feed(buf[:n])
		}
		switch {
		case errors.Is(err, io.EOF):
			s.readEOF = true
			return nil
		case err != nil || s.ending:
			return err
		case n == plainChunk && large == nil:
			large = chunks.Get().(*[chunkSize]byte)
			buf = large[:]
		case n < plainChunk && large != nil:
			chunks.Put(large)
			large, buf = nil, small
		}
	}
}

// awaitRoom waits, while no more may be read, for the wake-up that ends that state,
// or for the client's end. Both are found at the socket below TLS; other connections
// without a descriptor are tests' and are not held back.
func (s *session) awaitRoom() error {
	if s.below == nil || !s.full() {
		return nil
	}
	return s.below.Read(func(fd uintptr) bool { return s.hungUp(int(fd)) })
}

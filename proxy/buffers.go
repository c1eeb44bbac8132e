package proxy

import "sync"

// buffer is a byte slice that is pooled, so that a session holds memory only
// while it has something to hold. Whoever takes one from the pool owns it until
// it is put back; a slice of it must not outlive that.
type buffer struct{ b []byte }

const (
	// bufferSize is the capacity a buffer starts with.
	bufferSize = 4 << 10
	// maxPooled is the largest capacity that goes back to the pool.
	maxPooled = 256 << 10
)

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, bufferSize)} }}

func takeBuffer() *buffer { return buffers.Get().(*buffer) }

func (b *buffer) release() {
	if cap(b.b) <= maxPooled {
		b.b = b.b[:0]
		buffers.Put(b)
	}
}

// fresh are buffers that have not grown. What is put back to the others may have: it is
// for what goes soon, not for a few bytes that thousands of clients hold for long.
var fresh = sync.Pool{New: buffers.New}

// takeFitting returns a buffer with room for n bytes, and not for many more.
func takeFitting(n int) *buffer {
	if n > bufferSize {
		return &buffer{b: make([]byte, 0, n)}
	}
	return fresh.Get().(*buffer)
}

// releaseFitting puts a buffer of takeFitting back, which may have grown since.
func (b *buffer) releaseFitting() {
	if cap(b.b) != bufferSize {
		b.release()
		return
	}
	b.b = b.b[:0]
	fresh.Put(b)
}

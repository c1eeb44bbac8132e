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

// chunks are what clients are read into: held during one turn of the reader.
const chunkSize = 64 << 10

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

package proxy

import "sync"

// chunk is what a client is read into. Its reader holds it until all that is in it has
// been executed, or handed on: mostly for some microseconds, but for long where commands have
// to wait, for an upstream that takes nothing, or for the client itself. Nobody can tell
// before a command is read whether it will wait, and ten thousand readers that do would hold a
// chunk each. So there are two sizes: as long as readers hold little in all, each gets a
// large one, of which a pipeline needs few; beyond that a small one, which costs less than
// the client's connection does. Nobody has to wait for a chunk, whatever the others wait for.
type chunk struct{ b []byte }

const (
	// chunkSize is the size of a large chunk.
	chunkSize = 64 << 10
	// smallChunk is the size of a small one.
	smallChunk = 4 << 10
	// maxInHand is how many bytes of chunks are in the hands of readers, at most, before
	// chunks are small. Under a memory limit it is a sixteenth of that, if that is less.
	maxInHand = 16 << 20
)

var (
	largeChunks = sync.Pool{New: func() any { return &chunk{make([]byte, chunkSize)} }}
	smallChunks = sync.Pool{New: func() any { return &chunk{make([]byte, smallChunk)} }}
)

// takeChunk returns a chunk for a turn of a reader, who puts it back with putChunk.
func (p *Proxy) takeChunk() *chunk {
	if p.inHand.Add(chunkSize) <= p.maxInHand() {
		return largeChunks.Get().(*chunk)
	}
	p.inHand.Add(-chunkSize)
	return p.takeSmall()
}

func (p *Proxy) takeSmall() *chunk {
	p.inHand.Add(smallChunk)
	return smallChunks.Get().(*chunk)
}

// takeChunk is the proxy's, but for a session of which a part of a command may stay while there is
// little room left in memory: the part is small.
func (s *session) takeChunk() *chunk {
	if s.body == nil && s.pinned == nil && s.p.crowded() {
		return s.p.takeSmall()
	}
	return s.p.takeChunk()
}

func (p *Proxy) putChunk(c *chunk) {
	p.inHand.Add(-int64(len(c.b)))
	defer p.makeRoom()
	if len(c.b) == chunkSize {
		largeChunks.Put(c)
	} else {
		smallChunks.Put(c)
	}
}

func (p *Proxy) maxInHand() int64 {
	if limit := p.cfg.MemoryLimit; limit > 0 {
		return min(limit/16, maxInHand)
	}
	return maxInHand
}

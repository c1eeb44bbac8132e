package reclaim

import (
	"sync/atomic"
	"time"
)

// What is remembered of streams and consumers is bounded by bytes, not by numbers alone: names are
// the clients', and as long as they like. Sizes are estimates, of what a thing takes together with
// its places in maps and indexes. When there is no room, nothing further is remembered, and
// commands that would need it are forwarded; what is known already goes on.

const (
	// maxRemembered is how much is remembered where MaxRememberedBytes does not say.
	maxRemembered = 512 << 20
	// maxNameBytes is how long a name may be that is remembered.
	maxNameBytes = 1 << 10

	consumerBytes   = 1536
	setBytes        = 512 // a set of streams, and
	memberBytes     = 160 // each of them
	sweepBytes      = 768
	sweepingBytes   = 320 // each stream of a sweep
	targetBytes     = 768
	profileBytes    = 384
	learningBytes   = 1024 // each stream that is being learned, with question and reply
	noteBytes       = 192  // what is kept under a name: a cursor, a token, a denial
	lastReadBytes   = 256
	lastMemberBytes = 128
)

// memory counts what is remembered.
type memory struct {
	bytes atomic.Int64
	most  int64
}

// full reports whether nothing further is to be remembered. What is added at a time is no more
// than one command can name.
func (m *memory) full() bool { return m.bytes.Load() >= m.most }

func (m *memory) add(n int) { m.bytes.Add(int64(n)) }

// Bytes estimates what the engine has in memory of streams and consumers, and of entries for them.
func (e *Engine) Bytes() int64 { return e.memory.bytes.Load() + e.holdingBytes.Load() }

// tooLong reports whether one of these names is not to be remembered.
func tooLong(names ...string) bool {
	for _, name := range names {
		if len(name) > maxNameBytes {
			return true
		}
	}
	return false
}

// sizeOf is the size of names, each with so much beside it.
func sizeOf(names []string, each int) int {
	n := each * len(names)
	for _, name := range names {
		n += len(name)
	}
	return n
}

// charge counts n bytes more for a consumer. The lock is held.
func (c *consumer) charge(n int) {
	c.size += n
	c.memory.add(n)
}

// discharge takes back all that a consumer counts, and what is to come for it. The lock is held.
func (c *consumer) discharge() {
	c.memory.add(-c.size)
	c.memory = new(memory)
}

// deny notes until when a user is not asked again about a stream. The lock is held.
func (e *Engine) deny(k targetKey, until time.Time) {
	if _, ok := e.denied[k]; !ok {
		if e.memory.full() {
			return
		}
		e.memory.add(k.noteSize())
	}
	e.denied[k] = until
}

// allow forgets a denial. The lock is held.
func (e *Engine) allow(k targetKey) {
	if _, ok := e.denied[k]; ok {
		delete(e.denied, k)
		e.memory.add(-k.noteSize())
	}
}

func (k targetKey) noteSize() int { return noteBytes + len(k.stream) + len(k.group) }

// grant notes a lock that was granted here. The lock is held.
func (e *Engine) grant(k tokenKey, g grant) {
	if _, ok := e.tokens[k]; !ok {
		e.memory.add(k.size())
	}
	e.tokens[k] = g
	e.granted.Store(int64(len(e.tokens)))
}

// revoke forgets it. The lock is held.
func (e *Engine) revoke(k tokenKey) {
	if _, ok := e.tokens[k]; ok {
		delete(e.tokens, k)
		e.memory.add(-k.size())
	}
	e.granted.Store(int64(len(e.tokens)))
}

func (k tokenKey) size() int { return noteBytes + len(k.key) + len(k.token) }

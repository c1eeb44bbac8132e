package batcher

import "sync"

const (
	// maxSpare is the largest write buffer that is used again.
	maxSpare = 256 << 10
	// ownSpare is the largest that a connection keeps for itself which is not shared: there may be
	// one for each client, and most of them wait for long.
	ownSpare = 4 << 10
)

// batches are larger write buffers of connections that are not shared.
var batches = sync.Pool{New: func() any { return new([]byte) }}

// enqueue puts raw at the end of the queue. The lock is held.
func (c *Conn) enqueue(raw []byte) {
	if len(c.out) == 0 && len(raw) > max(cap(c.out), ownSpare) && !c.shared.Load() {
		c.out = (*batches.Get().(*[]byte))[:0]
	}
	c.out = append(c.out, raw...)
}

// recycle takes back the buffer of a batch that has been written. The lock is held.
func (c *Conn) recycle(batch []byte) {
	batch = batch[:0]
	switch {
	case cap(batch) > maxSpare:
	case cap(batch) > ownSpare && !c.shared.Load():
		batches.Put(&batch)
	case c.spare == nil:
		c.spare = batch
	}
}

// slim gives up large buffers of a connection that is not shared any more, whose queue is empty.
// The lock is held.
func (c *Conn) slim() {
	if cap(c.out) > ownSpare {
		c.out = nil
	}
	if cap(c.spare) > ownSpare {
		c.spare = nil
	}
}

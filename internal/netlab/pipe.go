package netlab

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// smallChunk and largeChunk are the sizes of read buffers: an idle connection
	// holds a small one, a busy one reads large ones.
	smallChunk = 4 << 10
	largeChunk = 64 << 10
	// maxQueued bounds the bytes under way in one direction of a connection: at
	// 14 ms it allows 4 GB/s, so that it bounds memory and not throughput.
	maxQueued = 64 << 20
	// maxBatch bounds how many chunks one write joins.
	maxBatch = 64
)

var (
	smallChunks = sync.Pool{New: func() any { return new([smallChunk]byte) }}
	largeChunks = sync.Pool{New: func() any { return new([largeChunk]byte) }}
)

func newChunk(large bool) []byte {
	if large {
		return largeChunks.Get().(*[largeChunk]byte)[:]
	}
	return smallChunks.Get().(*[smallChunk]byte)[:]
}

// freeChunk returns a buffer from newChunk, whatever of it is in use.
func freeChunk(b []byte) {
	switch cap(b) {
	case smallChunk:
		smallChunks.Put((*[smallChunk]byte)(b[:smallChunk]))
	case largeChunk:
		largeChunks.Put((*[largeChunk]byte)(b[:largeChunk]))
	}
}

// ending says what a parcel does behind its bytes.
type ending int

const (
	goesOn     ending = iota
	halfClosed        // end the stream to the receiver; the sender may go on
	finished          // the sender ended its stream
	aborted           // the sender is gone
)

// parcel is what one read brought, and when it leaves.
type parcel struct {
	data []byte
	due  time.Time
	end  ending
}

// pipe is one direction of a connection: a reader that stamps and queues, a
// writer that waits and delivers. The writer returns buffers to their pool.
type pipe struct {
	link     *Link
	pair     *pair
	dir      Dir
	src, dst net.Conn

	mu     sync.Mutex
	queue  []parcel // from first on; what lies before it was taken
	first  int
	queued int       // bytes under way
	last   time.Time // latest due time given, so that none is overtaken

	filled chan struct{} // a token: the queue may have something
	taken  chan struct{} // a token: the queue may have room
}

func newPipe(l *Link, p *pair, d Dir, src, dst net.Conn) *pipe {
	return &pipe{
		link: l, pair: p, dir: d, src: src, dst: dst,
		filled: make(chan struct{}, 1), taken: make(chan struct{}, 1),
	}
}

// read takes what the sender sends until its stream or the pair ends.
func (p *pipe) read() {
	large := false
	for p.link.faults.gates[p.dir].pass(p.pair.done) {
		buf := newChunk(large)
		n, err := p.src.Read(buf)
		large = n == len(buf) || large && n > smallChunk
		dropped := p.link.faults.drop[p.dir].Load()
		if n == 0 || dropped {
			p.link.arrived[p.dir].Add(int64(n))
			freeChunk(buf)
		} else if !p.push(parcel{data: buf[:n]}) {
			return
		}
		if err != nil {
			p.readEnded(err, dropped)
			return
		}
	}
}

func (p *pipe) readEnded(err error, dropped bool) {
	switch {
	case dropped:
		<-p.pair.done // the receiver must not learn of it
	case errors.Is(err, io.EOF):
		p.push(parcel{end: finished})
	default:
		p.push(parcel{end: aborted})
	}
}

func (p *pipe) halfClose() { p.enqueue(parcel{end: halfClosed}) }

// push queues a parcel, stamped, and waits while too much is under way; false
// means that the pair has ended.
func (p *pipe) push(c parcel) bool {
	for queued := p.enqueue(c); queued > maxQueued; queued = p.waiting() {
		select {
		case <-p.taken:
		case <-p.pair.done:
			return false
		}
	}
	return true
}

// enqueue stamps and queues a parcel and returns the bytes under way.
func (p *pipe) enqueue(c parcel) int {
	due := time.Now().Add(time.Duration(p.link.delay.Load()))
	p.mu.Lock()
	if due.Before(p.last) {
		due = p.last
	}
	c.due, p.last = due, due
	p.queue = append(p.queue, c)
	p.queued += len(c.data)
	p.link.arrived[p.dir].Add(int64(len(c.data))) // who sees it counted finds it queued
	queued := p.queued
	p.mu.Unlock()
	signal(p.filled)
	return queued
}

func (p *pipe) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queued
}

// signal leaves a token unless there is one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

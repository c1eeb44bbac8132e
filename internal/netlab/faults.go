package netlab

import (
	"sync"
	"sync/atomic"
)

// faults is what a link does to the bytes it carries.
type faults struct {
	gates   [numDirs]gate
	drop    [numDirs]atomic.Bool
	split   atomic.Int64
	corrupt [numDirs]atomic.Pointer[func([]byte)]
	fuses   [numDirs]fuse
}

func (f *faults) init() {
	for d := range f.gates {
		f.gates[d].init()
	}
}

// Cut closes both sides of every connection, in order (FIN), as a process that
// ends does. What is under way is lost. New connections are accepted.
func (l *Link) Cut() { l.each(func(p *pair) { p.end(false) }) }

// Reset aborts both sides of every connection (RST): what the peers have not
// read may be lost too.
func (l *Link) Reset() { l.each(func(p *pair) { p.end(true) }) }

// Stall holds up one direction of all connections, also new ones, until Resume:
// nothing more is delivered, and beyond the chunk being read nothing is taken
// from the sender, who will feel a full window.
func (l *Link) Stall(d Dir) { l.faults.gates[d].shut() }

// Resume ends Stall. What was held up is delivered at once.
func (l *Link) Resume(d Dir) { l.faults.gates[d].open() }

// Refuse closes the link's front, so that connects are refused as by a host on
// which nobody listens. Connections that are there stay.
func (l *Link) Refuse() error {
	l.mu.Lock()
	front := l.listener
	l.listener = nil
	l.mu.Unlock()
	if front == nil {
		return nil
	}
	return front.Close()
}

// Admit ends Refuse: the link listens again, at the same address.
func (l *Link) Admit() error { return l.relisten() }

// Drop makes everything that arrives in one direction vanish, the end of the
// stream included, as behind a firewall that lost its state. Senders notice
// nothing. What was dropped stays lost when dropping ends.
func (l *Link) Drop(d Dir, on bool) { l.faults.drop[d].Store(on) }

// SplitEvery delivers at most n bytes a write, in both directions; 0 ends that.
// The receiver's kernel may still join what it is slow to read.
func (l *Link) SplitEvery(n int) { l.faults.split.Store(int64(max(n, 0))) }

// HalfClose ends one direction of every connection behind the bytes under way:
// the receiver reads the end of the stream. Bytes that follow vanish. The
// opposite direction goes on.
func (l *Link) HalfClose(d Dir) {
	l.each(func(p *pair) { p.pipes[d].halfClose() })
}

// CutAfter lets exactly n more bytes through in one direction, counted over all
// connections, and then closes the connection that carried the last of them; a
// peer can still read what was delivered. It acts once; a negative n disarms it.
func (l *Link) CutAfter(d Dir, n int64) { l.faults.fuses[d].arm(n) }

// Corrupt lets f change what one direction delivers, chunk by chunk and in
// place; nil ends that. Chunks are what one read returned. f is called from the
// connections' goroutines, one at a time for each connection and direction.
func (l *Link) Corrupt(d Dir, f func(chunk []byte)) {
	if f == nil {
		l.faults.corrupt[d].Store(nil)
		return
	}
	l.faults.corrupt[d].Store(&f)
}

// gate is a door that is open or shut.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
}

func (g *gate) init() {
	g.opened = make(chan struct{})
	close(g.opened)
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened:
		g.opened = make(chan struct{})
	default:
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

// pass waits until the gate is open; false means that done came first.
func (g *gate) pass(done <-chan struct{}) bool {
	for {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		select {
		case <-opened:
			return true
		case <-done:
			return false
		}
	}
}

// fuse blows after a number of bytes, once.
type fuse struct {
	mu    sync.Mutex
	armed atomic.Bool
	left  int64
}

func (f *fuse) arm(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = n
	f.armed.Store(n >= 0)
}

// burn takes up to n bytes and says how many may pass, and whether that blew it.
func (f *fuse) burn(n int) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.armed.Load() {
		return n, false
	}
	if int64(n) < f.left {
		f.left -= int64(n)
		return n, false
	}
	f.armed.Store(false)
	return int(f.left), true
}

package proxy

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Buffers are counted byte by byte. What else clients cost is not: their stacks, the objects of the
// runtime, what the kernel keeps for their sockets. So the process as a whole is measured, and has a
// ceiling. What of it the rest takes, buffers cannot have: the limit in force falls below
// --memory-limit as the rest grows, and the greediest are refused as they are at any other limit. A
// share is left for buffers whatever the rest takes: when that is all there is left, no more clients
// and no more connections of their own are taken on, until some have gone.
//
// The measure is taken when so much has come to be held that it could matter, and by the sweeper.
// Who takes clients on takes it at once: with thousands of readers to run, nobody else would in
// time. What lies about as garbage is not needed, but only a collection knows how much that is; so
// buffers are set against the measure as they were at the last one. And who has just come has not
// taken yet what it will: clients and connections count for what they usually cost, if that is more.

// Need is what the whole process cannot do without, in bytes.
type Need struct {
	// Bytes is what was in use after the last collection, with what has been taken since but for
	// objects of the heap: those may be garbage.
	Bytes int64
	// Collections counts them.
	Collections uint64
}

const (
	// upstreamConn is about what a connection to the server costs, in bytes, while a client waits
	// on it.
	upstreamConn = 14 << 10
	// recollect is how long a process that takes nobody on waits for the runtime to collect.
	recollect = 5 * time.Second
)

// ceiling decides how much buffers may take, and whether anybody new is taken on.
type ceiling struct {
	limit atomic.Int64 // of buffers, in force
	full  atomic.Bool  // nobody is taken on
	grown atomic.Int64 // bytes taken since the last look
	wake  chan struct{}

	top, most int64 // of the process, and of buffers

	mu        sync.Mutex // held by whoever looks
	known     bool
	base      int64 // needed when nobody was there
	seen      uint64
	then      int64 // in buffers when the last collection was seen
	collected time.Time
	held      int64 // when the last collection was asked for
}

func (c *ceiling) init(top, most int64) {
	c.top, c.most, c.wake = top, most, make(chan struct{}, 1)
	c.limit.Store(most)
}

// applies reports whether there is one.
func (c *ceiling) applies() bool { return c.top > 0 && c.most > 0 }

// needs is how much of the ceiling may be needed: the collector cannot work without room, and with
// little of it not fast enough.
func (c *ceiling) needs() int64 { return c.top - c.top/4 }

// reserve is what is left for buffers whatever the rest takes.
func (c *ceiling) reserve() int64 { return min(c.top/8, c.most) }

// grow notes that n bytes more are taken, and reports whether that could matter.
func (c *ceiling) grow(n int64) bool {
	return c.applies() && c.grown.Add(n) >= c.top/64
}

// call has the process measured soon.
func (c *ceiling) call() {
	if !c.applies() {
		return
	}
	c.grown.Store(0)
	select {
	case c.wake <- struct{}{}:
	default: // it is about to be
	}
}

// reading is what there is at one moment.
type reading struct {
	Need
	buffers, remembered int64 // see inBuffers
	usual               int64 // what everybody who is there usually costs beside them
}

// step takes a reading. It reports whether anybody is taken on has changed.
func (c *ceiling) step(r reading) (changed bool) {
	if r.Collections != c.seen || !c.known {
		c.seen, c.then = r.Collections, r.buffers
	}
	if !c.known {
		c.known, c.base = true, r.Bytes
	}
	rest, reserve := max(r.Bytes-c.then, c.base+r.usual), c.reserve()+r.remembered
	c.limit.Store(min(max(c.needs()-rest, reserve), c.most))
	full, line := c.full.Load(), c.needs()-reserve
	switch {
	case !full && rest > line:
		c.full.Store(true)
	case full && rest <= line-c.top/64:
		c.full.Store(false)
	default:
		return false
	}
	return true
}

// worthCollecting reports whether somebody may have made room that only a collection can show, held
// being what is known to be in use. An idle process collects nothing by itself.
func (c *ceiling) worthCollecting(now time.Time, held int64) bool {
	waited := now.Sub(c.collected)
	if !c.full.Load() || waited < sweepEvery || held > c.held-c.top/64 && waited < recollect {
		c.held = max(c.held, held)
		return false
	}
	c.collected, c.held = now, held
	return true
}

// usual is about what the clients and the connections that are there cost, in bytes.
func (p *Proxy) usual() int64 {
	return int64(p.sessions.len())*idleClient + p.connected.Load()*upstreamConn
}

// tookOn notes a client or a connection that costs about n bytes.
func (p *Proxy) tookOn(n int64) {
	if p.ceiling.grow(n) {
		p.measure()
	}
}

// measure looks what the process needs.
func (p *Proxy) measure() {
	c := &p.ceiling
	if !c.mu.TryLock() {
		return
	}
	c.grown.Store(0)
	changed := c.step(reading{p.cfg.Need(), p.inBuffers(), p.remembered(), p.usual()})
	c.mu.Unlock()
	if changed {
		p.tellFull(c.full.Load())
	}
}

// keepBelow measures the process until the proxy closes.
func (p *Proxy) keepBelow() {
	c := &p.ceiling
	for {
		select {
		case <-c.wake:
		case <-p.closing:
			return
		}
		if c.worthCollecting(time.Now(), p.inBuffers()+p.usual()) {
			runtime.GC()
		}
		p.measure()
		p.shed()
		p.makeRoom()
	}
}

func (p *Proxy) tellFull(full bool) {
	if full {
		p.log.Warn("memory is short; no more clients and no more connections of their own are taken on", "clients", p.sessions.len())
		return
	}
	p.log.Info("memory is no longer short; clients are taken on again", "clients", p.sessions.len())
}

// memoryLimit is how much may be in buffers now; 0 is no limit.
func (p *Proxy) memoryLimit() int64 { return p.ceiling.limit.Load() }

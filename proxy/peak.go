package proxy

import (
	"sync/atomic"
	"time"
)

// peakSpan is how long a peak counts at least; it counts twice as long at most.
const peakSpan = 30 * time.Second

// peak is the most of something at a time lately. Transactions come in crowds: were
// the connections of the last crowd closed before the next, each would dial anew.
// Blocked commands have no part in it, because they may never come back.
type peak struct {
	now, before atomic.Int64
	turned      time.Time // of the sweeper
}

// saw notes that there are n.
func (p *peak) saw(n int) {
	for have := p.now.Load(); int64(n) > have; have = p.now.Load() {
		if p.now.CompareAndSwap(have, int64(n)) {
			return
		}
	}
}

// recent is the most that was seen lately.
func (p *peak) recent() int { return int(max(p.now.Load(), p.before.Load())) }

// turn forgets what is too old. One goroutine calls it.
func (p *peak) turn(at time.Time) {
	if at.Sub(p.turned) >= peakSpan {
		p.before.Store(p.now.Swap(0))
		p.turned = at
	}
}

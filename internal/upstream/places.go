package upstream

import (
	"context"
	"slices"
	"sync"
	"time"
)

// places bounds how many dials are under way at a time. Where several may share them they grow: a
// server that lets one in as quickly as ever can take one more beside it, which makes a crowd's wait
// short where the way is long; one that has become slow, has no room or is away gets few.
type places struct {
	least, most int

	mu      sync.Mutex
	width   int // how many there are now
	taken   int
	waiting [2][]chan struct{} // the first first: who goes before, and the others
	turns   int                // how many of them have got one
	fastest time.Duration      // dial of late
	since   time.Time          // when it was
}

// fastestHolds is for how long the fastest dial is a measure for others: ways change.
const fastestHolds = time.Minute

// slack is by how much more than the fastest and a quarter a dial may take and count as quick: who waits for
// a processor, here or at the server, is in the way of others, and the measure is coarse where the
// server is near.
const slack = 5 * time.Millisecond

func newPlaces(least, most int) *places { return &places{least: least, most: most, width: least} }

// enter waits for a place until ctx ends. Of those who wait, who goes before gets every second one: it
// does not stand behind a crowd, nor the crowd behind many like it.
func (p *places) enter(ctx context.Context, before bool) error {
	line := 1
	if before {
		line = 0
	}
	p.mu.Lock()
	if p.taken < p.width {
		p.taken++
		p.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	p.waiting[line] = append(p.waiting[line], mine)
	p.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting[line], mine); i >= 0 {
		p.waiting[line] = slices.Delete(p.waiting[line], i, i+1)
	} else { // it has got one meanwhile
		p.taken--
		p.admit()
	}
	return ctx.Err()
}

// leave gives a place back.
func (p *places) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	p.admit()
}

// admit gives what places are free to those who wait. The lock is held.
func (p *places) admit() {
	for p.taken < p.width && len(p.waiting[0])+len(p.waiting[1]) > 0 {
		p.turns++
		line := p.turns % 2
		if len(p.waiting[line]) == 0 {
			line = 1 - line
		}
		close(p.waiting[line][0])
		p.waiting[line] = slices.Delete(p.waiting[line], 0, 1)
		p.taken++
	}
}

// learn takes in how a dial has gone that has its place yet.
func (p *places) learn(took time.Duration, v Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch v {
	case Away:
		p.width = p.least
	case Welcome:
		if now := time.Now(); took < p.fastest || now.Sub(p.since) > fastestHolds {
			p.fastest, p.since = took, now
		}
		quick := took <= p.fastest+p.fastest/4+slack
		switch {
		case !quick:
			p.width = max(p.width-1, p.least)
		case p.taken >= p.width: // else there are enough
			p.width = min(p.width+1, p.most)
		}
	}
	p.admit()
}

// size is how many there are now.
func (p *places) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.width
}

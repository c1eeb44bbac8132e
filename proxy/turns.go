package proxy

import (
	"context"
	"slices"
	"sync"
)

// rank is whose turn comes first.
type rank uint8

const (
	rankKnown    rank = iota // credentials that were right the last time they were asked, of who is there or comes back
	rankFirst                // a session that has not been wrong yet
	rankRepeated             // one that has
	numRanks
)

// turns are how many may ask at a time. Who has to wait is served by rank, and within a
// rank in the order of arrival.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting [numRanks][]chan struct{} // closed when it is that one's turn
}

// take waits for a turn, which ends with give, and tells whether it had to wait. It
// returns the context's error if that ends before.
func (t *turns) take(ctx context.Context, r rank) (waited bool, err error) {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return false, nil
	}
	turn := make(chan struct{})
	t.waiting[r] = append(t.waiting[r], turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return true, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.waiting[r], turn)
	if i >= 0 {
		t.waiting[r] = slices.Delete(t.waiting[r], i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // it has come in the same moment
		t.give()
	}
	return true, ctx.Err()
}

// give ends a turn: it is the next one's.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.waiting {
		if list := t.waiting[r]; len(list) > 0 {
			close(list[0])
			t.waiting[r] = list[1:]
			return
		}
	}
	t.free++
}

// taken reports how many of so many turns are not free.
func (t *turns) taken(of int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return of - t.free
}

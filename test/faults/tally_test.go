//go:build faults

package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxTold bounds how many violations of one kind are told in words; all are counted.
const maxTold = 10

// tally adds up what clients were told, and keeps what must not have happened.
type tally struct {
	began    time.Time
	verdicts [numVerdicts]atomic.Int64
	closed   atomic.Int64 // connections that the proxy closed and had a reason to
	kinds    sync.Map     // kind of client -> *atomic.Int64, commands

	mu         sync.Mutex
	violations map[string]int // by promise
	told       []string
}

func newTally() *tally { return &tally{began: time.Now(), violations: make(map[string]int)} }

// count notes what became of commands of a kind of client.
func (t *tally) count(kind string, verdicts ...verdict) {
	for _, v := range verdicts {
		t.verdicts[v].Add(1)
	}
	n, _ := t.kinds.LoadOrStore(kind, new(atomic.Int64))
	n.(*atomic.Int64).Add(int64(len(verdicts)))
}

// commands is how many commands have an outcome.
func (t *tally) commands() (n int64) {
	for i := range t.verdicts {
		n += t.verdicts[i].Load()
	}
	return n
}

// violate notes that a promise was broken.
func (t *tally) violate(promise, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.violations[promise]++; t.violations[promise] <= maxTold {
		t.told = append(t.told, fmt.Sprintf("%7.3fs %s: %s", time.Since(t.began).Seconds(), promise, fmt.Sprintf(format, args...)))
	}
}

// broken is how many violations there were, of any promise.
func (t *tally) broken() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, v := range t.violations {
		n += v
	}
	return n
}

// String is a summary for people.
func (t *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d commands:", t.commands())
	for v := range numVerdicts {
		fmt.Fprintf(&b, " %d %v,", t.verdicts[v].Load(), v)
	}
	fmt.Fprintf(&b, " %d connections closed with a reason; by client:", t.closed.Load())
	kinds := map[string]int64{}
	t.kinds.Range(func(k, n any) bool {
		kinds[k.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&b, " %s %d", k, kinds[k])
	}
	return b.String()
}

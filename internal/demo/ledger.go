package demo

import (
	"slices"
	"sync"
	"time"
)

// ledger knows of each message of one side when it was sent and what it took to
// arrive. Its methods are safe for concurrent use.
type ledger struct {
	mu    sync.Mutex
	sent  []time.Time
	took  []time.Duration // by message; 0: on its way
	until time.Duration   // the last pass
}

// post books a message that is about to be sent, and numbers it.
func (l *ledger) post() (number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent, l.took = append(l.sent, time.Now()), append(l.took, 0)
	return len(l.sent) - 1
}

// arrived books an arrival; false if that message is not on its way.
func (l *ledger) arrived(number int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number < 0 || number >= len(l.took) || l.took[number] != 0 {
		return false
	}
	l.took[number] = max(time.Since(l.sent[number]), 1)
	return true
}

// passed books how long the worker did not read.
func (l *ledger) passed(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = d
}

// delays is what is to be seen of a ledger.
type delays struct {
	sent, waiting int
	p50, p95      time.Duration // those that wait counted at their age
	pass          time.Duration // the last one, 0 if there was none
}

// delays sums up what there is.
func (l *ledger) delays() delays {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := delays{sent: len(l.sent), pass: l.until}
	all := slices.Clone(l.took)
	for i, t := range all {
		if t == 0 {
			d.waiting++
			all[i] = time.Since(l.sent[i])
		}
	}
	slices.Sort(all)
	if n := len(all); n > 0 {
		d.p50, d.p95 = all[(n-1)/2], all[(n*95+99)/100-1]
	}
	return d
}

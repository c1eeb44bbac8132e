//go:build faults

package faults

import (
	"strings"
	"testing"
	"time"
)

// mutantRuns is how many runs a planted fault may survive.
const mutantRuns = 8

// TestMutants proves that the ledgers would notice: it builds the proxy with a fault planted in it
// (fault_*.go in batcher, proxy and reclaim) and wants the promise broken that the fault breaks.
func TestMutants(t *testing.T) {
	tests := []struct {
		tag, faults string
		promises    []string // of which one must be found broken
	}{
		{"fault_swap", "scripts flushed", []string{"P1"}},
		{"fault_resend", "scripts flushed", []string{"P3"}},
		{"fault_drop", "scripts flushed", []string{"P1", "hang"}},
		{"fault_deny", "reset,replies vanish", []string{"P3"}},
		{"fault_torn", "reset", []string{"P3"}},
		{"fault_early", "scripts flushed", []string{"P6"}},
		{"fault_hide", "scripts flushed", []string{"P6"}},
	}
	for _, tt := range tests {
		t.Run(tt.tag, func(t *testing.T) {
			t.Parallel()
			for run := range mutantRuns {
				l := startLab(t, plan{seed: firstSeed() + uint64(run), durable: true, mutant: tt.tag, clients: 100,
					think: 5 * time.Millisecond, time: 5 * time.Second, gap: 100 * time.Millisecond, only: tt.faults,
					hang: 10 * time.Second, settle: 10 * time.Second})
				l.until = func() bool { return l.found(tt.promises) }
				l.populate()
				l.breakThings()
				if !l.enough() {
					l.finish()
				}
				l.quit()
				if l.enough() {
					t.Logf("noticed in run %d after %d commands: %s", run+1, l.tally.commands(), strings.Join(l.tally.told[:1], ""))
					return
				}
				t.Logf("not noticed in run %d: %v, violations %v", run+1, l.tally, l.tally.violations)
			}
			t.Errorf("%d runs did not notice the fault", mutantRuns)
		})
	}
}

// found reports whether one of the promises was found broken.
func (l *lab) found(promises []string) bool {
	l.tally.mu.Lock()
	defer l.tally.mu.Unlock()
	for _, p := range promises {
		if l.tally.violations[p] > 0 {
			return true
		}
	}
	return false
}

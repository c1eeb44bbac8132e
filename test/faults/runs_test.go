//go:build faults

package faults

import (
	"strings"
	"testing"
	"time"
)

// TestLab breaks the proxy's world under load and wants every promise kept. The short form is one
// run on a server that keeps its data and one on a server that loses them, the proxy under the race
// detector.
func TestLab(t *testing.T) {
	p := plan{race: true, clients: or(*clientsFlag, 200), time: or(*timeFlag, 8*time.Second),
		gap: or(*gapFlag, 300*time.Millisecond), think: 5 * time.Millisecond, only: *onlyFlag}
	runs := 2
	if *runsFlag > 0 {
		runs, p.race = *runsFlag, *raceFlag
	}
	for i := range runs {
		p.seed, p.durable = firstSeed()+uint64(i), i%2 == 0
		l := experiment(t, p)
		if l.injected() == 0 || l.tally.verdicts[done].Load() == 0 {
			t.Error("nothing was broken or nothing served: this proves nothing")
		}
	}
}

// experiment is one run: peace, faults, peace, the ledgers. What it finds fails the test.
func experiment(t *testing.T, p plan) *lab {
	t.Helper()
	l := startLab(t, p)
	l.populate()
	<-time.After(300 * time.Millisecond)
	l.breakThings()
	l.finish()
	l.report(t)
	return l
}

// raceReports counts what the race detector said about the proxy.
func (l *lab) raceReports() {
	if n := strings.Count(l.proxy.log.String(), "WARNING: DATA RACE"); n > 0 {
		l.tally.violate("race", "%d data races:\n%s", n, l.proxy.log.String())
	}
}

// report tells and records what a run found, and fails the test for violations.
func (l *lab) report(t *testing.T) {
	t.Helper()
	l.raceReports()
	if err := l.record(t.Name()); err != nil {
		t.Error(err)
	}
	t.Logf("seed %d, durable %v: %d faults, %v", l.seed, l.durable, l.injected(), l.tally)
	for _, name := range l.faultNames() {
		t.Logf("  %3d × %-36s under %d commands", l.faults[name].times, name, l.faults[name].commands)
	}
	if n := l.tally.broken(); n > 0 && l.mutant == "" {
		t.Errorf("seed %d, durable %v: %d violations %v:\n%s", l.seed, l.durable, n, l.tally.violations, strings.Join(l.tally.told, "\n"))
	}
}

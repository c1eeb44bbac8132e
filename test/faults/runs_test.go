//go:build faults

package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLab breaks the proxy's world under load and wants every promise kept. The short form is two
// runs, the proxy under the race detector: in a network of its own before a server that keeps its
// data, and over TLS before one that loses them. The long form also takes turns between plain ones.
func TestLab(t *testing.T) {
	p := plan{race: true, clients: or(*clientsFlag, 200), time: or(*timeFlag, 8*time.Second),
		gap: or(*gapFlag, 300*time.Millisecond), think: 5 * time.Millisecond, only: *onlyFlag}
	runs := 2
	if *runsFlag > 0 {
		runs, p.race = *runsFlag, *raceFlag
	}
	for i := range runs {
		p.seed, p.durable = firstSeed()+uint64(i), i%2 == 0
		p.apart, p.secure = i%4 == 0, i%4 == 1
		t.Run(fmt.Sprint(p.seed), func(t *testing.T) { experiment(t, p) })
	}
}

// experiment is one run: peace, faults, peace, the ledgers. What it finds fails the test.
func experiment(t *testing.T, p plan) {
	t.Helper()
	l := startLab(t, p)
	l.populate()
	<-time.After(300 * time.Millisecond)
	l.breakThings()
	l.finish()
	l.report(t)
	if l.injected() == 0 || l.tally.verdicts[done].Load() == 0 {
		t.Error("nothing was broken or nothing served: this proves nothing")
	}
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
	if err := l.record(); err != nil {
		t.Error(err)
	}
	t.Logf("seed %d, durable %v, TLS %v, network %v: %d faults, %v", l.seed, l.durable, l.secure, l.space != nil, l.injected(), l.tally)
	for _, name := range l.faultNames() {
		t.Logf("  %3d × %-36s under %d commands", l.faults[name].times, name, l.faults[name].commands)
	}
	if n := l.tally.broken(); n > 0 && l.mutant == "" {
		t.Errorf("seed %d, durable %v: %d violations %v:\n%s", l.seed, l.durable, n, l.tally.violations, strings.Join(l.tally.told, "\n"))
	}
}

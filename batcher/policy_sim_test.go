package batcher

import (
	"testing"
	"time"
)

// Callers of every kind against the same lane in fake time. In each run nobody
// may wait longer than D, nor with nothing in flight, nor for nobody; the other
// columns say what the policy is for. Judged is what comes after a tenth of a
// second, for who streams shows only once replies have come.
func TestPolicySimulation(t *testing.T) {
	const us = time.Microsecond
	auto := DefaultPolicyConfig()
	fixedAt := func(d time.Duration) PolicyConfig {
		c := auto
		c.Auto, c.Delay = false, d
		return c
	}
	closed := func(n int, think time.Duration) func(*lab) {
		return func(l *lab) {
			for i := range n {
				l.join(&caller{think: l.exponential(think)}, time.Duration(i)*us)
			}
		}
	}
	open := func(n int, each time.Duration) func(*lab) {
		return func(l *lab) {
			for range n {
				l.join(&caller{gap: l.exponential(each)}, time.Duration(l.exponential(each)()))
			}
		}
	}
	// idleCrowd sends once and falls silent.
	idleCrowd := func(n int, next func(*lab)) func(*lab) {
		return func(l *lab) {
			for i := range n {
				l.join(&caller{}, time.Duration(i)*us)
			}
			next(l)
		}
	}
	for name, tc := range map[string]struct {
		config   PolicyConfig
		rtt      time.Duration
		callers  func(*lab)
		perBatch float64       // at least
		meanWait time.Duration // at most
	}{
		"one caller, near":                   {auto, 100 * us, closed(1, 10*us), 1, 0},
		"one caller, far":                    {auto, 28 * time.Millisecond, closed(1, 10*us), 1, 0},
		"one caller, fixed delay":            {fixedAt(time.Millisecond), 100 * us, closed(1, 10*us), 1, 0},
		"one caller beside a silent crowd":   {fixedAt(time.Millisecond), 100 * us, idleCrowd(1000, closed(1, 10*us)), 1, 0},
		"two callers, far":                   {auto, 28 * time.Millisecond, closed(2, 10*us), 1, 0},
		"128 callers in a loop, far":         {auto, 28 * time.Millisecond, closed(128, 10*us), 10, 100 * us},
		"128 callers in a loop, one ms":      {auto, time.Millisecond, closed(128, 10*us), 10, 50 * us},
		"128 callers that think, far":        {auto, 28 * time.Millisecond, closed(128, 5*time.Millisecond), 2, time.Millisecond},
		"open loop 100k/s, far":              {auto, 28 * time.Millisecond, open(128, 1280*us), 80, 600 * us},
		"open loop 100k/s, fixed 1 ms, near": {fixedAt(time.Millisecond), 100 * us, open(128, 1280*us), 5, 600 * us},
		"open loop 100k/s, delay 0":          {fixedAt(0), 28 * time.Millisecond, open(128, 1280*us), 1, 0},
		"open loop 100/s, far":               {auto, 28 * time.Millisecond, open(10, 100*time.Millisecond), 1, 30 * us},
		"one stream of strangers, one ms":    {auto, time.Millisecond, open(20, 200*us), 3, 50 * us},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(tc.config, tc.rtt)
			tc.callers(l)
			l.run(100 * time.Millisecond)
			l.stats = labStats{}
			s := l.run(time.Second)
			t.Logf("D %v: %d commands, %.1f per batch, waited %v on average, %v at most, reasons %v",
				l.policy.Delay(), s.commands, s.perBatch(), s.meanWait(), time.Duration(s.longest), s.byReason)
			if s.heldBeyond+s.waitedWhileIdle+s.nobodyLeftOut+s.orphan > 0 {
				t.Errorf("held beyond D %d, waited while idle %d, waited for nobody %d, forgotten %d",
					s.heldBeyond, s.waitedWhileIdle, s.nobodyLeftOut, s.orphan)
			}
			if s.commands == 0 {
				t.Error("nothing was sent")
			}
			if (l.policy.Delay() > 0 || tc.perBatch == 1) && s.perBatch() < tc.perBatch {
				t.Errorf("%.1f commands per batch, want %.1f", s.perBatch(), tc.perBatch)
			}
			if s.meanWait() > tc.meanWait {
				t.Errorf("waited %v on average, want at most %v", s.meanWait(), tc.meanWait)
			}
		})
	}
}

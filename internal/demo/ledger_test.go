package demo

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		if d := l.delays(); d != (delays{}) {
			t.Errorf("an empty ledger shows %+v", d)
		}
		for i := range 4 { // sent at 0, 1, 2, 3 s
			if n := l.post(); n != i {
				t.Errorf("message %d got number %d", i, n)
			}
			time.Sleep(time.Second)
		}
		if !l.arrived(3) || !l.arrived(1) { // after 1 and 3 s
			t.Error("an arrival was refused")
		}
		for _, n := range []int{3, 4, -1} {
			if l.arrived(n) {
				t.Errorf("the arrival of %d was booked, which is not on its way", n)
			}
		}
		l.passed(7 * time.Second)
		time.Sleep(6 * time.Second)
		// Those that wait are 10 and 8 s old.
		want := delays{sent: 4, waiting: 2, p50: 3 * time.Second, p95: 10 * time.Second, pass: 7 * time.Second}
		if d := l.delays(); d != want {
			t.Errorf("got %+v, want %+v", d, want)
		}
	})
}

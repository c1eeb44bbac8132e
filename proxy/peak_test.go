package proxy

import (
	"sync"
	"testing"
	"time"
)

func TestPeakCountsForAWhile(t *testing.T) {
	var p peak
	at := time.Unix(1000, 0)
	p.turn(at)
	for _, tt := range []struct {
		later     time.Duration
		saw, want int
	}{
		{0, 3, 3},
		{time.Second, 20, 20},
		{2 * time.Second, 5, 20},
		{peakSpan, 1, 20}, // of the span before
		{peakSpan + time.Second, 4, 20},
		{2 * peakSpan, 0, 4},
		{3 * peakSpan, 0, 0},
	} {
		p.turn(at.Add(tt.later))
		p.saw(tt.saw)
		if got := p.recent(); got != tt.want {
			t.Errorf("after %v: %d, want %d", tt.later, got, tt.want)
		}
	}
}

func TestPeakOfMany(t *testing.T) {
	var p peak
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 1000 {
				p.saw(n + i)
			}
		})
	}
	wg.Wait()
	if got := p.recent(); got != 1006 {
		t.Errorf("%d, want 1006", got)
	}
}

package upstream

import (
	"testing"
	"time"
)

func TestBackoffBounds(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		failed int
		draw   float64
		want   time.Duration
	}{
		{0, 0.5, 10 * ms},
		{1, 0, 10 * ms},
		{1, 1, 20 * ms},
		{2, 0.5, 25 * ms},
		{5, 1, 320 * ms},
		{6, 1, 500 * ms},
		{6, 0, 10 * ms},
		{1 << 40, 1, 500 * ms},
	}
	for _, tt := range tests {
		b := DefaultBackoff()
		b.Rand = func() float64 { return tt.draw }
		if got := b.Delay(tt.failed); got != tt.want {
			t.Errorf("Delay(%d) with draw %v = %v, want %v", tt.failed, tt.draw, got, tt.want)
		}
	}
}

func TestBackoffSpreads(t *testing.T) {
	b := DefaultBackoff()
	seen := map[time.Duration]bool{}
	for range 100 {
		d := b.Delay(10)
		if d < b.Min || d > b.Max {
			t.Fatalf("%v is out of bounds", d)
		}
		seen[d.Round(10*time.Millisecond)] = true
	}
	if len(seen) < 10 {
		t.Errorf("100 draws gave only %d different delays", len(seen))
	}
}

func TestBackoffFloorAboveCeiling(t *testing.T) {
	b := Backoff{Min: time.Second, Max: time.Millisecond}
	if got := b.Delay(3); got != time.Second {
		t.Errorf("got %v, want the floor", got)
	}
}

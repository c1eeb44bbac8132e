package telemetry

import (
	"testing"
	"time"
)

func TestReadiness(t *testing.T) {
	type sample struct {
		at   float64 // seconds
		up   bool
		want bool
	}
	for _, tt := range []struct {
		name    string
		samples []sample
	}{
		{"never up", []sample{{0, false, false}, {100, false, false}}},
		{"up at once", []sample{{0, true, true}, {1, true, true}}},
		{"up for the first time needs no patience", []sample{{0, false, false}, {9, true, true}}},
		{"a short failure is not noticed", []sample{{0, true, true}, {1, false, true}, {3.9, false, true}, {4, true, true}, {6.9, false, true}}},
		{"a long one is", []sample{{0, true, true}, {1, false, true}, {4, false, false}}},
		{"patience starts anew after each good sample", []sample{{0, true, true}, {1, false, true}, {3, true, true}, {4, false, true}, {6.9, false, true}, {7, false, false}}},
		{"return needs patience", []sample{{0, true, true}, {1, false, true}, {5, false, false}, {6, true, false}, {6.9, true, false}, {7, true, true}}},
		{"flapping does not return", []sample{{0, true, true}, {1, false, true}, {5, false, false}, {6, true, false}, {6.5, false, false}, {7.25, true, false}, {8, true, false}, {8.25, true, true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := DefaultReadiness()
			start := time.Unix(1000, 0)
			for _, s := range tt.samples {
				now := start.Add(time.Duration(s.at * float64(time.Second)))
				if got := r.Sample(now, s.up); got != s.want {
					t.Fatalf("at %vs, up %v: ready %v, want %v", s.at, s.up, got, s.want)
				}
			}
		})
	}
}

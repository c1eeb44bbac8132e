package batcher

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestRTTWindow(t *testing.T) {
	const ms = time.Millisecond
	type sample struct {
		at   time.Duration
		rtt  time.Duration
		want time.Duration
	}
	for name, samples := range map[string][]sample{
		"smallest counts":           {{0, 5 * ms, 5 * ms}, {ms, 3 * ms, 3 * ms}, {2 * ms, 9 * ms, 3 * ms}},
		"leaves after the window":   {{0, 3 * ms, 3 * ms}, {9 * time.Second, 9 * ms, 3 * ms}, {10 * time.Second, 9 * ms, 9 * ms}},
		"falls back to the next":    {{0, 3 * ms, 3 * ms}, {4 * time.Second, 5 * ms, 3 * ms}, {11 * time.Second, 9 * ms, 5 * ms}},
		"long silence":              {{0, 3 * ms, 3 * ms}, {time.Hour, 9 * ms, 9 * ms}, {time.Hour + 1, 8 * ms, 8 * ms}},
		"clock steps back":          {{time.Hour, 9 * ms, 9 * ms}, {0, 3 * ms, 3 * ms}, {time.Hour + 9*time.Second, 9 * ms, 3 * ms}},
		"path becomes longer":       {{0, ms, ms}, {5 * time.Second, 20 * ms, ms}, {12 * time.Second, 20 * ms, 20 * ms}},
		"exactly one window of gap": {{0, ms, ms}, {10 * time.Second, 2 * ms, 2 * ms}, {20 * time.Second, 3 * ms, 3 * ms}},
	} {
		var w rttWindow
		if w.min() != 0 {
			t.Errorf("%s: %v before the first sample", name, w.min())
		}
		for _, s := range samples {
			if w.add(int64(s.at), s.rtt); w.min() != s.want {
				t.Errorf("%s: at %v, after %v: %v, want %v", name, s.at, s.rtt, w.min(), s.want)
			}
		}
	}
}

// Against a list of all samples: the window's minimum is never older than ten
// seconds and never misses one of the last nine and a half.
func TestRTTWindowAgainstModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	type sample struct {
		at  int64
		rtt time.Duration
	}
	var all []sample
	var w rttWindow
	now := int64(0)
	for range 5000 {
		now += rnd.Int64N(int64(time.Second))
		s := sample{now, time.Duration(1 + rnd.Int64N(int64(time.Second)))}
		all = append(all, s)
		w.add(s.at, s.rtt)
		young, old := time.Hour, time.Hour
		for _, s := range all[max(0, len(all)-1000):] {
			if age := now - s.at; age <= int64(rttWindowLength) {
				old = min(old, s.rtt)
				if age <= int64(rttWindowLength)-rttSlot {
					young = min(young, s.rtt)
				}
			}
		}
		if w.min() > young || w.min() < old {
			t.Fatalf("at %d: %v, want between %v and %v", now, w.min(), old, young)
		}
	}
}

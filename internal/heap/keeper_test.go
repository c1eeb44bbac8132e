package heap

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

const mib = 1 << 20

func TestKeeperCollects(t *testing.T) {
	tests := []struct {
		name    string
		samples []sample
		want    string // for each sample: c collect, . do not
	}{
		{"nothing happens", []sample{{20 * mib, 0, 0}, {20 * mib, 1, 0}, {20 * mib, 2, 0}}, "..."},
		{"little more is not worth it", []sample{{20 * mib, 0, 0}, {27 * mib, 8 * mib, 0}, {27 * mib, 8 * mib, 0}}, "..."},
		{"a few times after a burst, and then never again", []sample{
			{20 * mib, 0, 0}, {500 * mib, 900 * mib, 0}, {500 * mib, 900 * mib, 0}, {400 * mib, 900 * mib, 0},
			{200 * mib, 900 * mib, 0}, {40 * mib, 900 * mib, 0}, {40 * mib, 900 * mib, 0}, {40 * mib, 900 * mib, 0},
		}, "..ccc..."},
		{"not while the burst goes on", []sample{{20 * mib, 0, 0}, {300 * mib, 300 * mib, 0}, {500 * mib, 600 * mib, 0}, {500 * mib, 900 * mib, 0}}, "...."},
		{"what stays is the new floor", []sample{
			{20 * mib, 0, 0}, {120 * mib, 200 * mib, 0}, {120 * mib, 200 * mib, 0}, {120 * mib, 200 * mib, 0},
			{120 * mib, 200 * mib, 0}, {120 * mib, 200 * mib, 0}, {120 * mib, 200 * mib, 0}, {130 * mib, 210 * mib, 0}, {130 * mib, 210 * mib, 0},
		}, "..ccc...."},
		{"again after a burst that came before the pages were back", []sample{
			{20 * mib, 0, 0}, {500 * mib, 900 * mib, 0}, {500 * mib, 900 * mib, 0}, {500 * mib, 900 * mib, 0},
			{480 * mib, 900 * mib, 0}, {450 * mib, 900 * mib, 0}, {500 * mib, 1900 * mib, 0}, {500 * mib, 1900 * mib, 0},
		}, "..ccc..c"},
		{"again after a burst that came between collections", []sample{
			{20 * mib, 0, 0}, {500 * mib, 900 * mib, 0}, {500 * mib, 900 * mib, 0}, {500 * mib, 1900 * mib, 0}, {500 * mib, 1900 * mib, 0},
		}, "..c.c"},
		{"busy with few allocations", []sample{{20 * mib, 0, 0}, {500 * mib, 900 * mib, 0}, {500 * mib, 930 * mib, 0}}, "..c"},
		{"not for what is in use", []sample{{20 * mib, 0, 0}, {220 * mib, 200 * mib, 190 * mib}, {220 * mib, 200 * mib, 190 * mib}}, "..."},
		{"once what was in use is not any more", []sample{
			{20 * mib, 0, 0}, {220 * mib, 200 * mib, 190 * mib}, {220 * mib, 200 * mib, 190 * mib}, {220 * mib, 200 * mib, 0}, {220 * mib, 200 * mib, 0},
		}, "...cc"},
		{"though it was in use at the last collection", []sample{
			{20 * mib, 0, 0}, {300 * mib, 200 * mib, 190 * mib}, {300 * mib, 200 * mib, 190 * mib}, {300 * mib, 200 * mib, 190 * mib},
			{230 * mib, 200 * mib, 190 * mib}, {230 * mib, 200 * mib, 190 * mib}, {230 * mib, 200 * mib, 190 * mib}, {230 * mib, 200 * mib, 0}, {230 * mib, 200 * mib, 0},
		}, "..ccc..cc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var k keeper
			got := ""
			for _, s := range tt.samples {
				if k.step(s) {
					got += "c"
				} else {
					got += "."
				}
			}
			if got != tt.want {
				t.Errorf("collected %q, want %q", got, tt.want)
			}
		})
	}
}

func TestKeepLooksRarelyAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, collections := 0, 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Second)
		defer cancel()
		keep(ctx, func() sample {
			looks++
			if looks == 2 {
				return sample{resident: 500 * mib, allocated: calm}
			}
			return sample{resident: 20 * mib, allocated: calm}
		}, func() { collections++ })
		if looks != 31 || collections != 3 {
			t.Errorf("%d looks and %d collections in a minute, want 31 and 3", looks, collections)
		}
	})
}

func TestLookKnowsItsCounters(t *testing.T) {
	s := look(3)
	if s.resident < mib || s.allocated == 0 || s.held != 3 {
		t.Errorf("%+v", s)
	}
}

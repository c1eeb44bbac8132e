package proxy

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// Pages are written as often as one looks, but not as often as a flood asks for them.
func TestPagesAreWrittenInMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := 0
		g := newPage(func() string { written++; return strconv.Itoa(written) })
		for range 30 { // somebody who looks
			if got := g.read(); got != strconv.Itoa(written) {
				t.Errorf("got %s of %d", got, written)
			}
			time.Sleep(time.Second / pagesPerSecond)
		}
		if written != 30 {
			t.Errorf("written %d times for 30 looks", written)
		}
		written = 0
		for range 10_000 { // in a second
			g.read()
			time.Sleep(time.Second / 10_000)
		}
		if written < pagesPerSecond || written > pagesPerSecond+pageBurst {
			t.Errorf("written %d times in a second", written)
		}
		time.Sleep(time.Second)
		if got := g.read(); got != strconv.Itoa(written) {
			t.Errorf("after the flood: %s of %d", got, written)
		}
	})
}

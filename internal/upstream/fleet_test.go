package upstream

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A thousand proxies lose their server at the same instant, each with six who want a connection:
// what the server sees of them a second while it is away, and in any tenth of a second when it is
// back. Away, a proxy dials four times a second, whoever wants it; back, the fleet comes spread over
// the longest pause, and not at once.
func TestThousandProxiesDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			proxies = 1000
			wanting = 6
			away    = 30 * time.Second
			bucket  = 100 * time.Millisecond
		)
		start := time.Now()
		var mu sync.Mutex
		var dials [400]int // by bucket
		dial := func() Verdict {
			mu.Lock()
			since := time.Since(start)
			dials[since/bucket]++
			mu.Unlock()
			if since < away {
				return Away
			}
			time.Sleep(time.Millisecond) // a greeting takes a while
			return Reached
		}
		var wg sync.WaitGroup
		for range proxies {
			g := NewGate(16, 16, DefaultBackoff())
			for range wanting {
				wg.Go(func() {
					for n := 1; ; n++ {
						if g.Enter(t.Context(), ForOne) != nil {
							return
						}
						v := dial()
						g.Leave(ForOne, v, time.Millisecond)
						if v == Reached {
							return
						}
						time.Sleep(g.Pause(n))
					}
				})
			}
		}
		wg.Wait()
		during, peak, after := 0, 0, 0
		for i, n := range dials {
			at := time.Duration(i) * bucket
			switch {
			case at >= away:
				after += n
				peak = max(peak, n)
			case at >= time.Second: // the first attempts are quick ones
				during += n
			}
		}
		perSecond := float64(during) / (away - time.Second).Seconds() / proxies
		t.Logf("away: %.1f dials a second of each proxy; back: %d dials, at most %d in %v", perSecond, after, peak, bucket)
		if perSecond < 3 || perSecond > 5 {
			t.Errorf("away: %.1f dials a second of each proxy", perSecond)
		}
		if after < proxies*wanting || peak > proxies*wanting/2 {
			t.Errorf("back: %d dials, of them %d in one stretch of %v", after, peak, bucket)
		}
	})
}

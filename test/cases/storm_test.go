//go:build cases

package cases

import (
	"sync"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// A hundred proxies lose their server at the same moment and find it again: meanwhile each of them
// tries a few times a second, they do not do it in step, and when the server is back all of them
// are served and it is not stormed.
func TestCase39ReconnectStorm(t *testing.T) {
	const proxies, away = 100, 3 * time.Second
	s := redistest.Start(t)
	link := startLink(t, s.Addr()) // accepts also while the server is away, and counts
	fleet := make([]*client, proxies)
	for i := range fleet {
		fleet[i] = startProxy(t, link.Addr()).client()
		fleet[i].Timeout = time.Minute
		fleet[i].gets("+PONG\r\n", "PING")
	}
	s.Kill()
	const pieces = 30
	counts := make([]int64, pieces)
	tick := time.NewTicker(away / pieces)
	last := link.Stats().Accepted
	first := last
	start := time.Now()
	for i := range counts {
		<-tick.C
		now := link.Stats().Accepted
		counts[i], last = now-last, now
	}
	tick.Stop()
	took := time.Since(start).Seconds()
	rate := float64(last-first) / took / proxies
	t.Logf("%.1f dials a second for each proxy while the server is away; in pieces of %v: %v", rate, away/pieces, counts)
	if rate > 10 {
		t.Errorf("%.1f dials a second for each proxy, want at most 10", rate)
	}
	// In step, most of the dials of a second would fall into one piece. The first second is that
	// of the common loss.
	for i, n := range counts[pieces/3:] {
		if n > (last-first)/4 {
			t.Errorf("%d of %d dials fell into piece %d", n, last-first, pieces/3+i)
		}
	}
	s.Restart()
	back := link.Stats().Accepted
	var all sync.WaitGroup
	for _, c := range fleet {
		all.Go(func() {
			for deadline := time.Now().Add(time.Minute); ; {
				got, err := c.Do("PING")
				if err == nil && got == "+PONG\r\n" {
					return
				}
				if err != nil || time.Now().After(deadline) {
					t.Errorf("not served after the server is back: %q, %v", got, err)
					return
				}
			}
		})
	}
	all.Wait()
	dials := link.Stats().Accepted - back
	t.Logf("%d dials until every proxy was served again", dials)
	if dials > 8*proxies {
		t.Errorf("%d dials of %d proxies until all were served again", dials, proxies)
	}
}

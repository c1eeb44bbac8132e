//go:build cases

package cases

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
)

// guess lets n clients guess passwords until the test ends: each connects, tries one and connects
// anew. The patient ones wait for the answer, the others only for as long as a right one would take.
func guess(t *testing.T, addr string, n int, patience time.Duration) (tries *atomic.Int64) {
	t.Helper()
	tries = new(atomic.Int64)
	stop := make(chan struct{})
	var guessing sync.WaitGroup
	t.Cleanup(func() {
		close(stop)
		guessing.Wait()
	})
	for i := range n {
		guessing.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				c, err := redistest.Dial(addr)
				if err != nil {
					continue
				}
				c.Timeout = patience
				if c.SendCommand("AUTH", "user-0", fmt.Sprint(i, ".", k)) == nil {
					_, _ = c.ReadReply()
					tries.Add(1)
				}
				_ = c.Close()
			}
		})
	}
	return tries
}

// Many who guess passwords, however they go about it, do not keep a client waiting whose password
// is right, whatever link leads to the server.
func TestRightPasswordAmongWrongOnes(t *testing.T) {
	const rounds = 25
	for _, delay := range []time.Duration{0, 14 * time.Millisecond} {
		for _, patience := range []time.Duration{time.Minute, 2*delay + 20*time.Millisecond} {
			t.Run(fmt.Sprintf("over %v, guesses that wait for %v", 2*delay, patience), func(t *testing.T) {
				s := redistest.Start(t)
				for i := range rounds {
					s.Do("ACL", "SETUSER", fmt.Sprint("user-", i), "on", ">right", "~*", "&*", "+@all")
				}
				link, err := netlab.Start(netlab.Options{Upstream: s.Addr(), Delay: delay})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = link.Close() })
				f := startProxy(t, link.Addr())
				f.client().gets("+PONG\r\n", "PING")
				tries := guess(t, f.tcp, 50, patience)
				// Longer than guesses are told at once.
				eventually(t, "guesses are under way", func() bool { return tries.Load() > 1100 })
				began, before := time.Now(), tries.Load()
				var direct, proxied []time.Duration
				for i := range rounds {
					direct = append(direct, letIn(t, link.Addr(), fmt.Sprint("user-", i)))
					proxied = append(proxied, letIn(t, f.tcp, fmt.Sprint("user-", i)))
				}
				slices.Sort(direct)
				slices.Sort(proxied)
				t.Logf("direct %v, %v; proxied %v, %v (medians, and the longest of %d); %.0f guesses a second",
					direct[rounds/2], direct[rounds-1], proxied[rounds/2], proxied[rounds-1], rounds,
					float64(tries.Load()-before)/time.Since(began).Seconds())
				if median := proxied[rounds/2]; median > 10*direct[rounds/2]+100*time.Millisecond {
					t.Errorf("a right password waits %v for its answer", median)
				}
			})
		}
	}
}

// letIn is how long a client that connects waits until its AUTH has been answered.
func letIn(t *testing.T, addr, user string) time.Duration {
	t.Helper()
	began := time.Now()
	c := connect(t, addr)
	c.gets("+OK\r\n", "AUTH", user, "right")
	return time.Since(began)
}

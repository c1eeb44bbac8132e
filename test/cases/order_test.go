//go:build cases

package cases

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// With more than one upstream connection a proxy reordered the commands of one client: what was
// added after the removal stayed. A pipeline of 10,000 pairs must leave an empty set, each pair
// having removed exactly what it had added.
func TestCase09OrderOverSeveralConnections(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.UpstreamConns = 4 })
	const clients, pairs = 5, 10_000
	var wg sync.WaitGroup
	for i := range clients {
		c := f.client()
		wg.Go(func() {
			if err := addAndRemove(c.Client, fmt.Sprint("z", i), pairs); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range clients {
		if n := s.Do("ZCARD", fmt.Sprint("z", i)); n != ":0\r\n" {
			t.Errorf("client %d left %q members", i, n)
		}
	}
	if lanes := f.Stats().Lanes; lanes < 4 {
		t.Errorf("%d lanes were used, want 4", lanes)
	}
}

// addAndRemove pipelines pairs of ZADD and ZREMRANGEBYSCORE while it reads their replies.
func addAndRemove(c *redistest.Client, key string, pairs int) error {
	pair := redistest.Command("ZADD", key, "1", "m") + redistest.Command("ZREMRANGEBYSCORE", key, "-inf", "+inf")
	var bad error
	for n := 0; n < pairs; n += 100 { // within what travels over a shared connection
		if err := c.Send(strings.Repeat(pair, 100)); err != nil {
			return err
		}
		for k := range 200 {
			reply, err := c.ReadReply()
			if err != nil {
				return err
			}
			if reply != ":1\r\n" && bad == nil {
				bad = fmt.Errorf("reply %d is %q", 2*n+k, reply)
			}
		}
	}
	return bad
}

package batcher

import (
	"strings"
	"testing"
)

// A connection that is not shared keeps no large buffer, whatever it has carried, and neither
// does one that was.
func TestPrivateConnectionsKeepNoLargeBuffers(t *testing.T) {
	large := strings.Repeat("k", 100<<10)
	carry := func(c *Conn, p *peer, r *recorder) {
		for range 3 {
			submit(t, c, r, large)
			submit(t, c, r, "small")
			p.take(2)
			p.send("+OK\r\n+OK\r\n")
		}
		r.expect(t, 6, strings.Repeat("+OK\r\n", 6))
		until(t, "the last write to be over", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.state == flushIdle && c.inflight == 0
		})
	}
	kept := func(c *Conn) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return cap(c.out) + cap(c.spare)
	}
	own, p := connect(t, Options{})
	carry(own, p, newRecorder())
	if n := kept(own); n > 2*ownSpare {
		t.Errorf("a private connection keeps %d bytes", n)
	}
	lane, p := connect(t, Options{Shared: true})
	carry(lane, p, newRecorder())
	if n := kept(lane); n < len(large) {
		t.Errorf("a lane keeps %d bytes: it has no buffer for its next batch", n)
	}
	lane.Retire()
	if !lane.Unshare() {
		t.Fatal("it is not empty")
	}
	if n := kept(lane); n > 2*ownSpare {
		t.Errorf("what was a lane keeps %d bytes", n)
	}
}

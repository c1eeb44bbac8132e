package proxy

import (
	"net"
	"testing"

	"streamproxy/internal/redistest"
	"streamproxy/reclaim"
)

// What a pinned session passes on is announced to reclaim if it may concern what that holds, and else
// not: subscribers say something now and then, and would keep everybody from being claimed for.
func TestPinnedIsAnnounced(t *testing.T) {
	f := startFake(t)
	for _, deny := range [][]string{nil, {"KEYS"}} {
		p := startProxy(t, f, func(c *Config) { c.Reclaim.Mode, c.Deny = reclaim.On, deny })
		xack := redistest.Command("XACK", "s", "g", "1-1")
		for bytes, want := range map[string]bool{
			redistest.Command("PING") + redistest.Command("SUBSCRIBE", "c"):                                 false,
			redistest.Command("GET", "k"):                                                                   false,
			redistest.Command("CLIENT", "TRACKING", "ON"):                                                   false,
			redistest.Command("GET", "k") + xack + redistest.Command("PING"):                                true,
			redistest.Command("NEW.COMMAND"):                                                                true,
			redistest.Command("EXEC"):                                                                       true,
			redistest.Command("XADD", "s", "MAXLEN", "1", "*", "a", "b"):                                    false,
			redistest.Command("SELECT", "1") + redistest.Command("XADD", "s", "MAXLEN", "1", "*", "a", "b"): true,
			"XACK s g 1-1\r\n": true,
			redistest.Command("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"): false,
		} {
			if got := p.meddlesPinned(t, bytes); got != want {
				t.Errorf("denied %v: %.60q: %v", deny, bytes, got)
			}
		}
		if !p.meddlesPinned(t, xack[:len(xack)-3], xack[len(xack)-3:]) {
			t.Errorf("denied %v: not announced when it comes in pieces", deny)
		}
	}
}

// meddlesPinned has a session frame what a client sends when it is pinned.
func (p *testProxy) meddlesPinned(t *testing.T, pieces ...string) bool {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	s := newSession(p.Proxy, near)
	var left []byte
	for _, piece := range pieces {
		left = append(left, piece...)
		out := takeBuffer()
		for stop := false; len(left) > 0 && !stop; {
			var n int
			n, stop = s.siftOne(out, left)
			left = left[n:]
		}
		out.release()
	}
	return s.meddling
}

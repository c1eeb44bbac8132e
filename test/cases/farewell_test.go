//go:build cases

package cases

import (
	"net"
	"testing"

	"streamproxy/internal/redistest"
)

// A peer that says its last words and leaves at once may be heard in one event: whoever waits for
// another one to learn of the end waits for ever. Clients that left so were never forgotten.
func TestCase13ClientSpeaksAndLeaves(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	f.client().gets("+PONG\r\n", "PING")
	f.everyListener(t, func(t *testing.T, addr string) {
		for range 20 {
			c := connect(t, addr)
			c.sends(redistest.Command("ECHO", "last words"))
			if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			c.replies(bulk("last words"))
			c.ends()
			_ = c.Close()
		}
	})
}

// An upstream that answers and leaves at once leaves the others unanswered: they are told at
// once, and not by the watchdog.
func TestCase13ServerSpeaksAndLeaves(t *testing.T) {
	t.Parallel()
	u := startFake(t)
	f := startProxy(t, u.addr)
	c1, c2 := f.client(), f.client()
	meetOnLane(f, u, c1, c2)
	for range 20 {
		c1.sends(redistest.Command("GET", "a"))
		first := u.next("GET", "a")
		c2.sends(redistest.Command("GET", "b"))
		r := u.next("GET", "b")
		if r.conn != first.conn {
			t.Fatal("two clients of one lane are on different connections")
		}
		if err := r.answer(bulk("a")); err != nil {
			t.Fatal(err)
		}
		if err := r.conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		c1.replies(bulk("a"))
		c2.replies(unknownOutcome)
	}
}

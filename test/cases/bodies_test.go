//go:build cases

package cases

import (
	"fmt"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// A client leaves in the middle of a body. On a shared connection the next client's bytes would
// become the rest of it; here the neighbour's PING stays a PING and no key gets a value of two
// clients, whatever the size and however it leaves.
func TestCase55HalfABody(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	f.everyListener(t, func(t *testing.T, addr string) {
		neighbour := connect(t, addr)
		for _, size := range []int{100, 60 << 10, 70 << 10, 3 << 20} {
			for name, leave := range leavings {
				key := fmt.Sprint(name, size)
				c := connect(t, addr)
				set := redistest.Command("SET", key, strings.Repeat("x", size))
				c.sends(redistest.Command("ECHO", "before") + set[:len(set)-size/2])
				c.replies(bulk("before"))
				leave(c)
				for range 5 {
					neighbour.gets("+PONG\r\n", "PING")
					neighbour.gets(":0\r\n", "EXISTS", key)
				}
			}
		}
		neighbour.silent()
	})
	eventually(t, "every session but the neighbours' ends", func() bool { return f.Stats().Clients <= 2 })
	eventually(t, "the connections with half a body are gone", func() bool { return f.Stats().PrivateBusy == 0 })
	if keys := s.Do("DBSIZE"); keys != ":0\r\n" {
		t.Errorf("%q keys were made of half a body", keys)
	}
}

// leavings are the ways in which a client goes.
var leavings = map[string]func(*client){
	"closed": func(c *client) { _ = c.Close() },
	"reset":  func(c *client) { reset(c.Conn) },
	"half-closed": func(c *client) {
		if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			c.t.Fatal(err)
		}
		c.ends()
	},
}

//go:build cases

package cases

import (
	"net"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
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

// A client that leaves what blocks is gone, as at the server, though much that it has sent stands
// before its end: what is pushed later stays in the list, and its place is free.
func TestCase13LeavesMuchUnread(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const places = 10
	f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.MaxClients = places })
	s.Do("XGROUP", "CREATE", "stream", "g", "$", "MKSTREAM")
	for name, behind := range map[string]string{
		"many commands": strings.Repeat(redistest.Command("PING"), 100000),
		"a part of one": "*2\r\n$4\r\nECHO\r\n$2000000\r\n" + strings.Repeat("x", 1<<20),
		"a large one":   redistest.Command("SET", "large", strings.Repeat("x", 1<<20)),
	} {
		for _, command := range [][]string{
			{"BLPOP", "list", "0"}, {"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "stream", ">"}, {"WAIT", "9", "0"},
		} {
			f.everyListener(t, func(t *testing.T, addr string) {
				for range places {
					c := connect(t, addr)
					c.sends(redistest.Command(command...) + behind)
					_ = c.Close()
				}
				eventually(t, name+" behind "+command[0]+": all have left", func() bool {
					return f.Stats().Clients == 0 && f.Stats().PrivateBusy == 0 && s.Info("clients", "blocked_clients") == "0"
				})
				s.Do("DEL", "list")
				s.Do("RPUSH", "list", "element")
				c := connect(t, addr)
				c.gets("*1\r\n"+bulk("element"), "LRANGE", "list", "0", "-1")
				_ = c.Close()
			})
		}
	}
}

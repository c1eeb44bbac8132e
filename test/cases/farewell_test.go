//go:build cases

package cases

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/netlab"
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

// lastWords are what a client says before it ends its sending direction, to a server that has been told
// what stands before them.
var lastWords = []struct{ before, words []string }{
	{[]string{"RPUSH q a b c"}, []string{"BLPOP q 0"}},
	{[]string{"RPUSH q a b c"}, []string{"BLPOP q 0", "SET x 1", "GET x"}},
	{[]string{"RPUSH q a b c"}, []string{"SET x 1", "BRPOP q 1", "BLPOP q 0", "BLPOP q 0", "BLPOP q 0", "SET x 2"}},
	{[]string{"RPUSH q a b c"}, []string{"BLMOVE q x LEFT RIGHT 0", "BRPOPLPUSH x q 0", "LLEN q"}},
	{[]string{"ZADD z 1 a 2 b"}, []string{"BZPOPMIN z 0", "BZPOPMAX z 0", "PING"}},
	{[]string{"XADD s 1-1 a b"}, []string{"XREAD BLOCK 0 STREAMS s 0", "XREAD BLOCK 0 STREAMS s 1-1", "SET x 1"}},
	{[]string{"XGROUP CREATE s g 0 MKSTREAM", "XADD s 1-1 a b"}, []string{"XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "XACK s g 1-1"}},
	{[]string{"XGROUP CREATE s g 0 MKSTREAM", "XADD s 1-1 a b"}, []string{"XREADGROUP GROUP g c BLOCK 0 STREAMS s >"}},
	{nil, []string{"SET x 1", "WAIT 0 0", "GET x", "WAIT 1 0", "SET x 2"}},
	{nil, []string{"WAIT 0 0", "WAIT 9 100000", "SET x 2"}},
	{[]string{"SET q x"}, []string{"BLPOP q 0", "GET q"}},
	{nil, []string{"SET x 1", "BLPOP q 0", "SET x 2"}},
	{nil, []string{"BLPOP q 30", "SET x 2"}},
}

// Who has ended the sending direction behind a command that does not have to block is answered, and
// what stands behind it is executed, up to what has to: as directly, near the server and far from it.
func TestCase13LastWordsThatMayBlock(t *testing.T) {
	t.Parallel()
	behind, plain := redistest.Start(t), redistest.Start(t)
	far, err := netlab.Start(netlab.Options{Upstream: behind.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	far.SetDelay(2 * time.Millisecond)
	for _, upstream := range []string{behind.Addr(), far.Addr()} {
		f := startProxy(t, upstream)
		for _, d := range lastWords {
			name := strings.Join(d.words, ", ")
			want := hears(t, plain, plain.Addr(), d.before, d.words)
			f.everyListener(t, func(t *testing.T, addr string) {
				for range 5 {
					if got := hears(t, behind, addr, d.before, d.words); !slices.Equal(got, want) {
						t.Errorf("%s: got %q, directly %q", name, got, want)
					}
				}
			})
		}
	}
}

// hears is what a client hears that says words and ends its sending direction, and what they have left
// behind at the server.
func hears(t *testing.T, s *redistest.Server, addr string, before, words []string) []string {
	t.Helper()
	s.Do("FLUSHALL")
	for _, command := range before {
		s.Do(strings.Fields(command)...)
	}
	c := connect(t, addr)
	c.sends(spoken(words))
	if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(patience))
	got, err := io.ReadAll(c.Conn)
	if err != nil {
		t.Fatalf("%q: %q, %v", words, got, err)
	}
	_ = c.Close()
	eventually(t, "nothing blocks", func() bool { return s.Info("clients", "blocked_clients") == "0" })
	return []string{string(got), s.Do("LRANGE", "q", "0", "-1"), s.Do("GET", "x"), s.Do("LRANGE", "x", "0", "-1"),
		s.Do("ZRANGE", "z", "0", "-1"), s.Do("XPENDING", "s", "g")}
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

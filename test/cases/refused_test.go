//go:build cases

package cases

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// Odd but legal input crashed or hung a proxy. Whatever the server says to it is what the client
// gets; nothing at all, where that is the server's answer.
func TestCase12OddInput(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	f.everyListener(t, func(t *testing.T, addr string) {
		c, direct := connect(t, addr), connect(t, s.Addr())
		for _, raw := range []string{
			redistest.Command("EVAL", "return 1", "0"),
			"*1\r\n$3\r\nGET\r\n",
			"*0\r\n", "*-1\r\n", "\r\n", "\n", "  \r\n", "*0\r\n*-1\r\n\r\n\n*0\r\n",
			"*1\r\n$0\r\n\r\n", "PING\r\n", "ping\n", "SET a \"b \\x41\"\r\nGET a\r\n",
		} {
			raw += redistest.Command("ECHO", "end")
			c.sends(raw)
			direct.sends(raw)
			for want := ""; want != bulk("end"); {
				want = direct.reply()
				if got := c.reply(); got != want {
					t.Fatalf("%q: got %q, the server says %q", raw, got, want)
				}
			}
			c.silent()
		}
	})
}

// One client more than allowed is told so, as Redis tells it, and closed; a place that becomes
// free is given to the next.
func TestCase36MaxClients(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.MaxClients = 1 })
	holder := f.client()
	for round := range 3 {
		holder.gets("+PONG\r\n", "PING")
		for i := range 4 {
			c := connect(t, []string{f.tcp, f.unix}[i%2])
			c.replies("-ERR max number of clients reached\r\n")
			c.ends()
		}
		holder.gets(bulk(fmt.Sprint(round)), "ECHO", fmt.Sprint(round))
		if n := f.Stats().Clients; n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
		_ = holder.Close()
		eventually(t, "the place becomes free", func() bool { return f.Stats().Clients == 0 })
		holder = connect(t, f.unix)
	}
}

// Sizes that no memory holds, or no integer: an error to the sender, as the server words it, and the
// end of its connection. What came before in the same write is executed.
func TestCase37AbsurdSizes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	neighbour := f.client()
	for _, raw := range []string{
		"*2\r\n$3\r\nGET\r\n$2147483645\r\n",
		"*2\r\n$3\r\nGET\r\n$-2\r\n",
		"*2\r\n$3\r\nGET\r\n$9223372036854775807\r\n",
		"*2\r\n$3\r\nGET\r\n$92233720368547758080\r\n",
		"*9223372036854775807\r\n", "*92233720368547758080\r\n",
		strings.Repeat("x", 64<<10+1),
	} {
		f.everyListener(t, func(t *testing.T, addr string) {
			refusedAlike(t, connect(t, addr), connect(t, s.Addr()), raw)
		})
		neighbour.gets("+PONG\r\n", "PING")
	}
	// The server would wait for so many; here it is a limit of the proxy, with the same words.
	c := f.client()
	c.sends("*999999999\r\n")
	c.replies("-ERR Protocol error: invalid multibulk length\r\n")
	c.ends()
	eventually(t, "nothing is held for clients that are gone", func() bool { return f.Stats().BufferedBytes == 0 })
}

// refusedAlike sends a valid command and then raw to both, and wants the same of both: the
// reply, the same error, the end.
func refusedAlike(t *testing.T, c, direct *client, raw string) {
	t.Helper()
	for _, each := range []*client{direct, c} {
		each.sends(redistest.Command("ECHO", "before") + raw)
		each.replies(bulk("before"))
	}
	want := direct.reply()
	if got := c.reply(); got != want || !strings.HasPrefix(got, "-ERR Protocol error: ") {
		t.Fatalf("%.60q: got %q, the server says %q", raw, got, want)
	}
	c.ends()
}

// A million arguments are many but legal; a negative number of keys is the server's to refuse.
func TestCase37LegalExtremes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	c, neighbour := f.client(), f.client()
	const n = 1_000_000
	s.Do("SET", "x", "v")
	c.gets(fmt.Sprintf(":%d\r\n", n), append([]string{"EXISTS"}, strings.Split(strings.Repeat("x ", n-1)+"x", " ")...)...)
	for _, keys := range []string{"-1", "9223372036854775807", "1"} {
		c.gets(s.Do("EVAL", "s", keys), "EVAL", "s", keys)
	}
	neighbour.gets(bulk("v"), "GET", "x")
}

// malformed is framing that a server could read in another way than the proxy does.
var malformed = []struct {
	raw string
	// alike: the server refuses it with the same words. Where it does not, it is lenient, and a
	// proxy must not guess what it would take from it.
	alike bool
}{
	{"SET a \"b c\r\n", true},
	{"SET a 'b\"\r\n", true},
	{"SET a \"b\"c\r\n", false},
	{"*1\r\n$04\r\nPING\r\n", false},
	{"*01\r\n$4\r\nPING\r\n", false},
	{"*1\n$4\r\nPING\r\n", false},
	{"*1\r\n$4\nPING\r\n", false},
	{"*2\r\n$4\r\nECHO\r\n$1\r\nxyz", false},
	{"*1\r\n$4\r\nPINGPING\r\n", false},
	{"*+1\r\n$4\r\nPING\r\n", false},
	{"*1\r\n$+4\r\nPING\r\n", false},
	{"*1\r\nPING\r\n", true},
	{"*1\r\n:4\r\nPING\r\n", true},
}

// Malformed framing is refused to its sender, behind the valid commands in the same write, and nobody
// else on the lane is touched: not even if the neighbour's command is in flight at that moment.
func TestCase65MalformedFraming(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	neighbour := f.client()
	for _, m := range malformed {
		f.everyListener(t, func(t *testing.T, addr string) {
			c := connect(t, addr)
			if m.alike {
				refusedAlike(t, c, connect(t, s.Addr()), m.raw)
				return
			}
			c.sends(redistest.Command("ECHO", "before") + m.raw + redistest.Command("SET", "smuggled", "1"))
			neighbour.gets(bulk(m.raw), "ECHO", m.raw)
			c.replies(bulk("before"))
			if got := c.reply(); !strings.HasPrefix(got, "-ERR Protocol error: ") {
				t.Fatalf("%q: got %q", m.raw, got)
			}
			c.ends()
		})
	}
	neighbour.gets(":0\r\n", "EXISTS", "smuggled", "a")
}

// On a connection of the client's own, too, what is no command is refused behind the replies to what
// stands before it, though that may block first. Redis 8.2 neither refuses it then nor closes, which
// leaves nothing to compare.
func TestCase65MalformedBehindWhatBlocks(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		if strings.HasSuffix(t.Name(), "/redis-current") {
			return
		}
		s := redistest.Start(t)
		f := startProxy(t, s.Addr())
		for _, first := range [][]string{
			{"CLIENT", "TRACKING", "ON"}, {"READONLY"}, {"UNSUBSCRIBE"}, {"SUBSCRIBE", "ch"},
		} {
			for _, blocks := range [][]string{{"BLPOP", "none", "0.05"}, {"BLPOP", "some", "0"}, {"BLPOP", "later", "0"}, {"MULTI"}, {"WAIT", "1", "20"}} {
				f.everyListener(t, func(t *testing.T, addr string) {
					var all [2]string
					for i, c := range []*client{connect(t, s.Addr()), connect(t, addr)} {
						s.Do("DEL", "some", "later", "after")
						s.Do("RPUSH", "some", "v")
						c.sends(pipeline(first, blocks, []string{"SET", "after", "1"}) + "*1\r\n$+4\r\nPING\r\n")
						if blocks[1%len(blocks)] == "later" && first[0] != "SUBSCRIBE" {
							eventually(t, "it blocks", func() bool { return s.Info("clients", "blocked_clients") == "1" })
							s.Do("RPUSH", "later", "v")
						}
						_ = c.Conn.SetReadDeadline(time.Now().Add(patience))
						got, err := io.ReadAll(c.Conn)
						if err != nil {
							t.Fatalf("%v, %v: got %q, %v", first, blocks, got, err)
						}
						all[i] = string(got) + s.Do("EXISTS", "after")
					}
					if all[0] != all[1] {
						t.Errorf("%v, %v: got %q, the server says %q", first, blocks, all[1], all[0])
					}
				})
			}
		}
	})
}

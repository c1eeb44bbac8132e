//go:build streams

package streams

import (
	"os"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// servers are the environment variables that name a server's binary, "" for the one on PATH.
var servers = []struct{ name, variable string }{
	{"debian", ""},
	{"oldest", "REDIS_62_SERVER"},
	{"current", "REDIS_CURRENT_SERVER"},
	{"valkey", "VALKEY_SERVER"},
}

// everyServer runs a test with each kind of server.
func everyServer(t *testing.T, test func(*testing.T)) {
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			if server.variable != "" {
				path := os.Getenv(server.variable)
				if path == "" && os.Getenv("ALLOW_SKIP") == "1" {
					t.Skipf("%s names no server", server.variable)
				}
				if path == "" {
					t.Fatalf("%s names no server: run test/install/servers.sh, or allow skips with ALLOW_SKIP=1", server.variable)
				}
				t.Setenv("REDIS_SERVER", path)
			}
			test(t)
		})
	}
}

// Whatever state a stream is in, a client gets the bytes that the server itself would have sent: two
// servers go through the same, one of them is asked through the proxy.
func TestShapes(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		for _, proto := range []string{"2", "3"} {
			t.Run("RESP"+proto, func(t *testing.T) { shapes(t, proto) })
		}
	})
}

// twins are a client of the proxy and one of a server of its own, which are told the same.
type twins struct {
	t              *testing.T
	proxied, plain *client
	servers        [2]*client
	sha            string
}

func shapes(t *testing.T, proto string) {
	w, f := startTwins(t, proto)
	w.same("unknown", readCommand("g", "c", 10, -1, []string{"s", "next", "gone"}))
	w.pass("unknown")
	for _, stream := range []string{"s", "next", "gone"} {
		w.proxied.state(stream, "g", "cold")
	}
	w.pass("cold")
	w.fill()
	w.pass("hot")
	w.claims("the rest")
	w.parked()
	w.errors()
	if f.count("local multi") == 0 || f.count("local xautoclaim") == 0 || f.count("delivered") == 0 {
		t.Error("the proxy has answered nothing by itself")
	}
}

func startTwins(t *testing.T, proto string) (*twins, *front) {
	t.Helper()
	a, b := redistest.Start(t), redistest.Start(t)
	f := startProxy(t, a.Addr())
	w := &twins{t: t, proxied: f.client(), plain: direct(t, b), servers: [2]*client{direct(t, a), direct(t, b)}}
	for _, c := range w.servers {
		groups(c, "g", []string{"s", "next", "gone"})
		c.gets("+OK\r\n", "SET", "string", "v")
		c.ask("ACL", "SETUSER", "weak", "on", ">weak", "~*", "+@all", "-xautoclaim")
		w.sha = c.loadRelease()
	}
	for _, c := range []*client{w.proxied, w.plain} {
		c.ask("HELLO", proto)
	}
	return w, f
}

// same sends the same to both and compares the replies.
func (w *twins) same(what string, commands ...[]string) {
	w.t.Helper()
	got, want := w.proxied.all(commands...), w.plain.all(commands...)
	for i := range want {
		if got[i] != want[i] {
			w.t.Errorf("%s: %.80q\n got %.500q\nwant %.500q", what, commands[i], got[i], want[i])
		}
	}
}

// form is the transaction in which newer workers ask.
func (w *twins) form(stream, token string) [][]string {
	lock := lockOf + stream
	return [][]string{
		{"MULTI"}, {"SET", lock, token, "NX", "PX", "60000"}, claimCommand(stream, "g", "c", minIdleMillis, "2"),
		{"EVALSHA", w.sha, "1", lock, token}, {"EXEC"},
	}
}

// pass asks in every way.
func (w *twins) pass(state string) {
	w.t.Helper()
	w.same(state, []string{"SCRIPT", "EXISTS", w.sha})
	w.same(state, w.form("s", "t1")...)
	w.same(state, claimCommand("next", "g", "c", minIdleMillis, "2"))
	w.same(state, []string{"SET", lockOf + "s", "t2", "PX", "60000", "NX"})
	w.same(state, claimCommand("s", "g", "c", minIdleMillis, "2"))
	w.same(state, []string{"EVALSHA", w.sha, "1", lockOf + "s", "t2"})
	w.same(state, []string{"XAUTOCLAIM", "s", "g", "c", minIdleMillis, "-", "COUNT", "1", "JUSTID"})
}

// fill lets a dead worker have entries, some of which have been deleted since.
func (w *twins) fill() {
	w.t.Helper()
	for _, c := range w.servers {
		for _, stream := range []string{"s", "next", "gone"} {
			deliver(c, stream, "g", "dead", time.Hour, oldIDs(1, 9)...)
			c.gets(":1\r\n", "XDEL", stream, "2-1")
		}
	}
	for _, stream := range []string{"s", "next", "gone"} {
		w.proxied.state(stream, "g", "hot")
	}
}

// claims asks until nothing is left.
func (w *twins) claims(state string) {
	w.t.Helper()
	for _, stream := range []string{"s", "next"} {
		for range 7 {
			w.same(state, claimCommand(stream, "g", "c", minIdleMillis, "2"))
		}
	}
}

// parked is given by the proxy, as new entries, what a direct client has to ask for.
func (w *twins) parked() {
	w.t.Helper()
	for _, c := range w.servers {
		deliver(c, "next", "g", "dead", time.Hour, "100-1", "101-1")
		c.ask(append([]string{"XACK", "gone", "g"}, oldIDs(1, 9)...)...)
	}
	read := readCommand("g", "c", 10, 5*time.Second, []string{"s", "next", "gone"})
	got := w.proxied.ask(read...)
	// The direct one gets them by reading its own history, once they are its own.
	w.plain.ask("XCLAIM", "next", "g", "c", "0", "100-1", "101-1")
	want := w.plain.ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", "next", "99-1")
	if got != want {
		w.t.Errorf("parked:\n got %.500q\nwant %.500q", got, want)
	}
}

// errors are the server's own, also of what was answered here a moment ago.
func (w *twins) errors() {
	w.t.Helper()
	w.same("wrong type", claimCommand("string", "g", "c", minIdleMillis, "2"))
	w.same("no stream", claimCommand("none", "g", "c", minIdleMillis, "2"))
	w.same("syntax", []string{"XAUTOCLAIM", "s", "g", "c", "x", "0-0"}, []string{"XAUTOCLAIM", "s", "g"})
	for _, c := range w.servers {
		c.gets(":1\r\n", "XGROUP", "DESTROY", "gone", "g")
	}
	eventually(w.t, "the proxy has noticed", func() bool { return w.proxied.knows("gone", "g") == "" })
	w.same("no group", claimCommand("gone", "g", "c", minIdleMillis, "2"))
	w.same("no group", w.form("gone", "t3")...)
	w.same("not allowed", []string{"AUTH", "weak", "weak"})
	w.same("not allowed", claimCommand("s", "g", "c", minIdleMillis, "2"))
	got, want := w.proxied.all(w.form("s", "t4")...), w.plain.all(w.form("s", "t4")...)
	if g, t := strings.Join(got, ""), strings.Join(want, ""); g != t {
		w.t.Errorf("not allowed, in a transaction:\n got %.500q\nwant %.500q", g, t)
	}
}

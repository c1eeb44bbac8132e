package proxy

import (
	"fmt"
	"strings"
	"testing"
)

// Nobody is unblocked by an id of which the server does not show that it is the right one: the
// connection ends instead.
func TestNoWitness(t *testing.T) {
	for name, answer := range map[string]func(args []string) (string, bool){
		"may not ask":  func(args []string) (string, bool) { return "-NOPERM no\r\n", args[1] == "LIST" },
		"cannot ask":   func(args []string) (string, bool) { return "-ERR syntax error\r\n", args[1] == "LIST" },
		"another's id": func(args []string) (string, bool) { return bulkReply("id=9 name=x age=0\n"), args[1] == "LIST" },
		"nobody's id":  func(args []string) (string, bool) { return bulkReply(""), args[1] == "LIST" },
		"has no name":  func(args []string) (string, bool) { return "-NOPERM no\r\n", args[1] == "SETNAME" },
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t)
			f.script(func(_ *fakeConn, args []string) (string, bool) {
				if args[0] != "CLIENT" {
					return "", false
				}
				return answer(args)
			})
			p := startProxy(t, f, nil)
			c, s, _, at := blockedBy(t, f, p, "a")
			expect(t, p.client(), ":0\r\n", "CLIENT", "UNBLOCK", fmt.Sprint(s.id))
			c.Close()
			f.wait(t, "the end of the connection", func() bool { return f.conns[at.id] == nil })
			if n := f.count("CLIENT UNBLOCK " + fmt.Sprint(s.id)); n != 1 || f.count("CLIENT UNBLOCK") != n {
				t.Errorf("%d calls by an id that is no server's, want the client's own; %q", n, f.seen)
			}
		})
	}
}

// A server that is busy is asked again; what it has shown once need not be asked.
func TestWitnessIsAskedOnce(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.PrivateMinIdle = 0 })
	until(t, "the server to be known", func() bool { return p.Stats().UpstreamUp })
	p.fragile.Store(false) // so that the connection is used again
	lists := 0
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		if args[0] != "CLIENT" || args[1] != "LIST" {
			return "", false
		}
		lists++
		return "-BUSY Redis is busy running a script\r\n", lists == 1
	})
	var first *fakeConn
	for i := range 3 {
		c, _, _, at := blockedBy(t, f, p, strings.Repeat("k", i+1))
		c.Close()
		until(t, "the connection to be given back", func() bool { return p.Stats().PrivateBusy == 0 && p.sessions.len() == 0 })
		if first == nil {
			first = at
		}
		if at != first {
			t.Error("another connection: this proves nothing")
		}
	}
	if lists != 2 {
		t.Errorf("asked %d times, want twice", lists)
	}
}

// The names of connections begin and end alike, and none is another's.
func TestConnNames(t *testing.T) {
	mine, others := connNames("host"), connNames("host")
	seen := map[string]bool{}
	for range 100 {
		for _, name := range []string{mine("lane"), others("lane")} {
			if !strings.HasPrefix(name, "streamproxy:host:") || !strings.HasSuffix(name, ":lane") || seen[name] {
				t.Errorf("%q, before: %v", name, seen[name])
			}
			seen[name] = true
		}
	}
}

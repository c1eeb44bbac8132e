package proxy

import (
	"fmt"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// UNBLOCK that comes too early, or that the server is too busy for, is repeated until
// the command has ended; the connection is used again only then.
func TestCallBackIsRepeated(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	until(t, "the server to be known", func() bool { return p.Stats().UpstreamUp })
	p.fragile.Store(false) // one that may be unblocked without more ado
	tries := 0
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		if args[0] != "CLIENT" || args[1] != "UNBLOCK" {
			return "", false
		}
		tries++
		switch tries {
		case 1:
			return ":0\r\n", true
		case 2:
			return "-BUSY Redis is busy running a script\r\n", true
		}
		return "", false
	})
	c := p.client()
	c.SendCommand("BLPOP", "k", "0")
	f.await(t, "BLPOP", 1)
	c.Close()
	f.await(t, "CLIENT UNBLOCK", 3)
	until(t, "the connection to be given back", func() bool { return p.Stats().PrivateBusy == 0 })
	if n := f.count("CLIENT UNBLOCK"); n != 3 {
		t.Errorf("%d attempts", n)
	}
	if f.kinds("private") < 2 {
		t.Error("a connection was closed under a blocked command")
	}
}

// Where UNBLOCK is not allowed, a command with a timeout runs to it; one without sees
// the end of our sending side.
func TestCallBackDenied(t *testing.T) {
	for _, forEver := range []bool{false, true} {
		t.Run(fmt.Sprint(forEver), func(t *testing.T) {
			f := startFake(t)
			p := startProxy(t, f, nil)
			var blocked *fakeConn
			f.script(func(c *fakeConn, args []string) (string, bool) {
				switch {
				case args[0] == "BLPOP":
					blocked = c
				case args[0] == "CLIENT" && args[1] == "UNBLOCK":
					return "-NOPERM this user has no permissions\r\n", true
				}
				return "", false
			})
			timeout := "30"
			if forEver {
				timeout = "0"
			}
			c := p.client()
			c.SendCommand("BLPOP", "k", timeout)
			f.await(t, "BLPOP", 1)
			c.Close()
			f.await(t, "CLIENT UNBLOCK", 1)
			if forEver {
				f.wait(t, "the end of the connection", func() bool { return f.conns[blocked.id] == nil })
				return
			}
			until(t, "the session to end", func() bool { return p.sessions.len() == 1 || p.sessions.len() == 0 })
			f.mu.Lock()
			there := f.conns[blocked.id] != nil
			blocked.blocked = false
			f.mu.Unlock()
			if !there {
				t.Fatal("closed under a blocked command")
			}
			blocked.Write([]byte("*-1\r\n"))
			until(t, "the connection to be given back", func() bool { return p.Stats().PrivateBusy == 0 })
		})
	}
}

// A client that leaves in the middle of a large command costs that connection alone.
func TestLeaveWithinBody(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	other := p.client()
	expect(t, other, bulkReply("a"), "GET", "a")
	c := p.client()
	if err := c.Send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n" + strings.Repeat("x", 100<<10)); err != nil {
		t.Fatal(err)
	}
	s := p.sessionOf(t, c)
	until(t, "the body to be under way", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.active != nil })
	c.Close()
	until(t, "the session to end", func() bool { return p.sessions.len() == 1 })
	expect(t, other, bulkReply("b"), "GET", "b")
	if n := f.count("SET"); n != 0 {
		t.Errorf("%d SETs were executed", n)
	}
}

// sessionOf finds the session of a client by its address.
func (p *testProxy) sessionOf(t testing.TB, c *redistest.Client) (found *session) {
	t.Helper()
	until(t, "the session", func() bool {
		for _, s := range p.sessions.all() {
			if s.remote() == c.Conn.LocalAddr().String() {
				found = s
			}
		}
		return found != nil
	})
	return found
}

// A client that resets its connection in the middle of everything leaves no session,
// no connection and no buffer behind.
func TestLeaveAnyhow(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	for i := range 100 {
		c := p.client()
		switch i % 4 {
		case 0:
			c.Send(redistest.Command("GET", "a") + "*2\r\n$3\r\nGE")
		case 1:
			c.Send(strings.Repeat(redistest.Command("GET", "a"), 50))
		case 2:
			c.Send(redistest.Command("FOO.BAR", "x") + redistest.Command("GET", "a"))
		case 3:
			c.Send(redistest.Command("BLPOP", "k", "0") + redistest.Command("GET", "a"))
		}
		reset(c)
	}
	until(t, "the sessions to end", func() bool { return p.sessions.len() == 0 })
	until(t, "the connections to be free", func() bool { st := p.Stats(); return st.PrivateBusy == 0 && st.InFlight == 0 })
	if n := p.buffered.Load(); n != 0 {
		t.Errorf("%d bytes are still charged", n)
	}
	expect(t, p.client(), bulkReply("a"), "GET", "a")
}

// reset ends a client's connection with an RST.
func reset(c *redistest.Client) {
	if tcp, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

func TestWaitsForEver(t *testing.T) {
	for line, want := range map[string]bool{
		"BLPOP k 0":                            true,
		"BLPOP k 1":                            false,
		"XREAD BLOCK 0 STREAMS s $":            true,
		"XREAD BLOCK 10 STREAMS s $":           false,
		"XREADGROUP GROUP g c BLOCK 0 STREAMS": true,
		"BLMOVE a b LEFT RIGHT 0":              true,
		"BLMOVE a b LEFT RIGHT 2.5":            false,
	} {
		if got := waitsForEver(words(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// What the server never answers, or answers in part, keeps neither a connection nor a place among the
// transactions for long once its client has gone: Redis 8.2 leaves an AUTH that fails within EXEC out.
func TestLeftUnanswered(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.PrivateMax = 1 })
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		switch args[0] {
		case "MULTI":
			return "+OK\r\n", true
		case "AUTH":
			return "+QUEUED\r\n", true
		case "EXEC":
			return "*1\r\n", true
		}
		return "", false
	})
	for i, pieces := range [][]string{{"MULTI", "AUTH a b", "EXEC"}, {"MULTI\r\nAUTH a b\r\nEXEC"}} {
		c := p.client()
		for _, piece := range pieces {
			if err := c.Send(piece + "\r\n"); err != nil {
				t.Fatal(err)
			}
		}
		f.await(t, "EXEC", i+1)
		c.Close()
		until(t, "its connection to end", func() bool { return p.Stats().PrivateBusy == 0 && len(p.txSlots) == 0 })
	}
}

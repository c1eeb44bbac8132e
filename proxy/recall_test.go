package proxy

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"streamproxy/batcher"
	"streamproxy/internal/redistest"
)

// blockedBy is a client of p whose BLPOP is under way, and the session's and the server's
// side of it.
func blockedBy(t *testing.T, f *fakeServer, p *testProxy, key string) (*redistest.Client, *session, *exclusive, *fakeConn) {
	t.Helper()
	c := p.client()
	c.SendCommand("BLPOP", key, "0")
	f.await(t, "BLPOP "+key, 1)
	s := p.sessionOf(t, c)
	s.mu.Lock()
	e := s.active
	s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return c, s, e, f.conns[e.conn.ID()]
}

// pop answers a blocked BLPOP.
func (c *fakeConn) pop(f *fakeServer) {
	f.mu.Lock()
	c.blocked = false
	f.mu.Unlock()
	c.Write([]byte(popped))
}

const popped = "*2\r\n$1\r\nk\r\n$1\r\nv\r\n"

// A drain calls back what was blocked a moment ago. If that has been answered meanwhile,
// its connection may be another's.
func TestRecallThatComesLate(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.PrivateMinIdle = 0 })
	first, s, e, at := blockedBy(t, f, p, "a")
	at.pop(f)
	expectReply(t, first, popped)
	second, _, _, again := blockedBy(t, f, p, "b")
	if again != at {
		t.Fatal("the connection was not used again: this proves nothing")
	}
	s.unblock(e)
	if n := f.count("CLIENT UNBLOCK"); n != 0 {
		t.Errorf("%d calls for a command that had its reply", n)
	}
	again.pop(f)
	expectReply(t, second, popped)
}

// A call that is on its way when the reply comes hits nobody else, whoever made it.
func TestRecallOnItsWay(t *testing.T) {
	for _, by := range []string{"drain", "drain, with care", "another client"} {
		t.Run(by, func(t *testing.T) {
			f := startFake(t)
			p := startProxy(t, f, func(c *Config) { c.PrivateMinIdle = 0 })
			until(t, "the server to be known", func() bool { return p.Stats().UpstreamUp })
			p.fragile.Store(by == "drain, with care")
			first, s, e, at := blockedBy(t, f, p, "a")
			called := false
			f.script(func(_ *fakeConn, args []string) (string, bool) {
				it := len(args) > 2 && args[1] == "UNBLOCK" && args[2] == fmt.Sprint(at.id)
				called = called || it
				return "", it // is not answered for the moment
			})
			if by == "another client" {
				p.client().SendCommand("CLIENT", "UNBLOCK", fmt.Sprint(s.id), "ERROR")
			} else {
				p.wg.Go(func() { s.unblock(e) })
			}
			f.wait(t, "the call", func() bool { return called })
			at.pop(f)
			expectReply(t, first, popped)
			second, _, _, other := blockedBy(t, f, p, "b")
			if other == at {
				t.Error("the connection was used again")
			}
			other.pop(f)
			expectReply(t, second, popped)
			f.cut("control") // whoever still waits for the call's reply
		})
	}
}

// A large command is called back with the same care as a small one.
func TestRecallOfLarge(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	until(t, "the server to be known", func() bool { return p.Stats().UpstreamUp })
	p.fragile.Store(true)
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		if len(args) != 4 || args[1] != "UNBLOCK" {
			return "", false
		}
		for id, c := range f.conns {
			if c.blocked && fmt.Sprint(id) == args[2] {
				c.blocked = false
				c.Write([]byte(unblockedText + "client unblocked via CLIENT UNBLOCK\r\n"))
			}
		}
		return ":1\r\n", true
	})
	c := p.client()
	c.SendCommand("BLPOP", strings.Repeat("k", 2*largeCommand), "0")
	f.await(t, "BLPOP", 1)
	p.sessionOf(t, c).dismiss(false)
	expectReply(t, c, "*-1\r\n")
}

// A read that goes on can be called back again, in however many pieces its first reply came.
func TestRecallSinkAgain(t *testing.T) {
	e := &exclusive{recalled: new(atomic.Bool), cmd: words("XREADGROUP GROUP g c STREAMS s >")}
	e.recalled.Store(true)
	got := &sinkOf{}
	r := &recallSink{Sink: got, e: e, proto: 2}
	for _, piece := range []string{"*", "-1\r\n", "-UNBLO", "CKED x", "\r\n"} {
		done := 0
		if strings.HasSuffix(piece, "\n") {
			done = 1
		}
		r.Reply([]byte(piece), done, 0)
	}
	if want := "*-1\r\n*-1\r\n"; got.text != want {
		t.Errorf("%q, want %q", got.text, want)
	}
}

// sinkOf keeps what it is given.
type sinkOf struct {
	batcher.Sink
	text string
}

func (s *sinkOf) Reply(b []byte, _, _ int) { s.text += string(b) }

func TestFragile(t *testing.T) {
	for _, tt := range []struct {
		server, version string
		want            bool
	}{
		{"redis", "7.0.15", true}, {"redis", "6.2.14", true}, {"redis", "7.2.0", false}, {"redis", "8.2.3", false},
		{"redis", "", true}, {"redis", "unstable", true}, {"valkey", "7.2.5", false}, {"", "", true},
	} {
		if got := fragile(tt.server, tt.version); got != tt.want {
			t.Errorf("%s %s: %v", tt.server, tt.version, got)
		}
	}
}

// What a client gets whose command was called back with care: null where the server would have said
// so, and the server's own word where that is a number.
func TestRecallAnswersAsTheTimeoutWould(t *testing.T) {
	for _, tt := range []struct{ command, hello, want string }{
		{"BLPOP k 0", "2", "*-1\r\n"}, {"BLMOVE a b LEFT LEFT 0", "2", "*-1\r\n"}, {"BRPOPLPUSH a b 0", "2", "*-1\r\n"},
		{"BLMOVE a b LEFT LEFT 0", "3", "_\r\n"}, {"WAIT 3 0", "2", ":2\r\n"}, {"WAIT 3 0", "3", ":2\r\n"},
	} {
		t.Run(tt.command+" in version "+tt.hello, func(t *testing.T) {
			f := startFake(t)
			p := startProxy(t, f, nil)
			until(t, "the server to be known", func() bool { return p.Stats().UpstreamUp })
			p.fragile.Store(true)
			f.script(func(c *fakeConn, args []string) (string, bool) {
				switch {
				case strings.Join(args, " ") == tt.command:
					c.blocked = true
					return "", true
				case len(args) < 3 || args[1] != "UNBLOCK":
					return "", false
				}
				for id, at := range f.conns {
					if !at.blocked || fmt.Sprint(id) != args[2] {
						continue
					}
					at.blocked = false
					if len(args) == 4 {
						at.Write([]byte(unblockedText + "client unblocked via CLIENT UNBLOCK\r\n"))
					} else {
						at.Write([]byte(":2\r\n"))
					}
				}
				return ":1\r\n", true
			})
			c := p.client()
			if _, err := c.Do("HELLO", tt.hello); err != nil {
				t.Fatal(err)
			}
			c.SendCommand(strings.Fields(tt.command)...)
			f.await(t, tt.command, 1)
			p.sessionOf(t, c).dismiss(false)
			expectReply(t, c, tt.want)
		})
	}
}

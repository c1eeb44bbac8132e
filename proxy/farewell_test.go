package proxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// halfClosed is a client that sends SET, the command and GET, and ends its sending direction. What the
// server says to the command, and to calls for it, is left to the test, as the connections tell on
// which they came.
func halfClosed(t *testing.T, f *fakeServer, p *testProxy, command ...string) (c *redistest.Client, at, calls chan *fakeConn) {
	t.Helper()
	until(t, "the server to be known", func() bool { return p.Stats().UpstreamUp })
	at, calls = make(chan *fakeConn, 9), make(chan *fakeConn, 99)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		switch {
		case args[0] == command[0]:
			at <- c
			return "", true
		case args[0] == "CLIENT" && args[1] == "UNBLOCK":
			calls <- c
			return "", true
		}
		return "", false
	})
	c = p.client()
	c.Send(redistest.Command("SET", "before") + redistest.Command(command...) + redistest.Command("GET", "behind"))
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	return c, at, calls
}

const entries = "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"

// What a client has asked for that is there for it is answered, and executed, though it has ended its
// sending direction: only what is blocked makes it gone.
func TestHalfCloseUnderWhatIsAnswered(t *testing.T) {
	for command, reply := range map[string]string{
		"BLPOP k 0":                  popped,
		"BLMOVE a b LEFT RIGHT 0":    bulkReply("v"),
		"BZPOPMIN k 0":               popped,
		"XREAD BLOCK 0 STREAMS s 0":  entries,
		"BRPOP k 1":                  "-WRONGTYPE no list\r\n",
		"WAIT 1 0":                   ":3\r\n",
		"XREADGROUP GROUP g c BLOCK": entries, // and the rest
	} {
		for _, first := range []string{"call", "reply"} {
			t.Run(command+"/"+first, func(t *testing.T) {
				f := startFake(t)
				p := startProxy(t, f, nil)
				words := strings.Fields(command)
				if words[0] == "XREADGROUP" {
					words = append(words, "0", "STREAMS", "s", ">")
				}
				c, at, calls := halfClosed(t, f, p, words...)
				conn, call := <-at, <-calls
				if first == "call" {
					io.WriteString(call, ":0\r\n")
					call = <-calls // the first may have overtaken the command
				}
				io.WriteString(conn, reply)
				if words[0] != "WAIT" {
					expectReply(t, c, bulkReply("before"))
					expectReply(t, c, reply)
				}
				io.WriteString(call, ":0\r\n")
				if words[0] == "WAIT" {
					expectReply(t, c, bulkReply("before"))
					expectReply(t, c, reply)
				}
				expectReply(t, c, bulkReply("behind"))
				expectEnd(t, c)
				until(t, "the session to end", func() bool { return p.sessions.len() == 0 })
			})
		}
	}
}

// A WAIT for nobody is not called back: its connection may be asked about the same writes again.
func TestHalfCloseUnderWaitForNobody(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	c, at, calls := halfClosed(t, f, p, "WAIT", "0", "0")
	conn, s := <-at, p.only(t)
	until(t, "the end to be met", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.waiters > 0 })
	io.WriteString(conn, ":0\r\n")
	for _, want := range []string{bulkReply("before"), ":0\r\n", bulkReply("behind")} {
		expectReply(t, c, want)
	}
	expectEnd(t, c)
	if n := len(calls); n != 0 {
		t.Errorf("%d calls", n)
	}
}

// Under what is blocked it is gone: it is not told of the call, and nothing behind it is executed.
func TestHalfCloseUnderWhatIsBlocked(t *testing.T) {
	for command, reply := range map[string]string{
		"BLPOP k 0": "*-1\r\n", "BRPOP k 0": unblockedText + "client unblocked via CLIENT UNBLOCK\r\n",
		"BRPOPLPUSH a b 0": "$-1\r\n", "WAIT 3 0": ":2\r\n",
	} {
		for _, first := range []string{"call", "reply"} {
			t.Run(command+"/"+first, func(t *testing.T) {
				f := startFake(t)
				p := startProxy(t, f, nil)
				c, at, calls := halfClosed(t, f, p, strings.Fields(command)...)
				conn, call := <-at, <-calls
				io.WriteString(call, ":0\r\n") // it has overtaken the command
				call = <-calls
				if first == "call" {
					io.WriteString(call, ":1\r\n")
				}
				io.WriteString(conn, reply)
				expectReply(t, c, bulkReply("before"))
				if first == "reply" {
					io.WriteString(call, ":1\r\n")
				}
				expectEnd(t, c)
				until(t, "the session to end", func() bool { return p.sessions.len() == 0 })
				until(t, "the connection to be free", func() bool { return p.Stats().PrivateBusy == 0 })
				if n := f.count("GET behind"); n != 0 {
					t.Errorf("what stands behind was executed %d times", n)
				}
			})
		}
	}
}

// The same where more stands behind the command than is read before its end is looked for.
func TestHalfCloseBehindMuch(t *testing.T) {
	for _, reply := range []string{popped, "*-1\r\n"} {
		t.Run(fmt.Sprintf("%q", reply), func(t *testing.T) {
			f := startFake(t)
			p := startProxy(t, f, func(c *Config) { c.ClientBufferLimit = 1 << 20 })
			const n = 78000 // what is left unread fits into the receive buffer, and so the end behind it
			called := false
			f.script(func(_ *fakeConn, args []string) (string, bool) {
				it := args[0] == "CLIENT" && args[1] == "UNBLOCK"
				called = called || it
				return ":0\r\n", it
			})
			c := p.client()
			s := p.only(t)
			if err := s.nc.(*net.TCPConn).SetReadBuffer(400 << 10); err != nil {
				t.Fatal(err)
			}
			go func() {
				c.Send(redistest.Command("BLPOP", "k", "0") + strings.Repeat(redistest.Command("GET", "k"), n))
				c.Conn.(*net.TCPConn).CloseWrite()
			}()
			until(t, "the end to be known", func() bool { return s.left.Load() })
			f.wait(t, "the call", func() bool { return called })
			if !s.pending() {
				t.Fatal("everything is read: this proves nothing")
			}
			io.WriteString(f.blockedConn(t), reply)
			if reply == popped {
				expectReply(t, c, popped)
				for range n {
					expectReply(t, c, bulkReply("k"))
				}
			} else if got, _ := c.ReadReply(); got != "" { // what it has sent is not all read
				t.Errorf("got %q", got)
			}
			until(t, "the session to end", func() bool { return p.sessions.len() == 0 })
		})
	}
}

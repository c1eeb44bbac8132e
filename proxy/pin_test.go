package proxy

import (
	"net"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// Whatever the pieces in which replies come, all of them are passed on but the end that is held, and
// what is held is the longest that may begin it.
func TestPipeHoldsTheEndOfReset(t *testing.T) {
	for _, stream := range []string{
		"$1\r\na\r\n+OK\r\n",
		"+RESET\r\n+OK\r\n",
		"*3\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n+OK\r\n+OK\r\n+RESET\r\n+OK\r\n",
		"+RESET\r\n+RESET\r\n+OK\r\n",
		"+RESET\r\n+OK\r\n+RESET\r\n+OK\r\n",
		"+RESET\r\n-NOPERM no\r\n+OK\r\n",
		"$5\r\n+RESE\r\n",
		"",
	} {
		for i := range 2 * (len(stream) + 1) {
			size, skipped := 1+i/2, i%2 > 0
			r := &pipe{s: &session{resetSkipped: skipped}}
			var passed strings.Builder
			for rest := stream; rest != ""; {
				n := min(size, len(rest))
				passed.Write(r.holdEnd([]byte(rest[:n])))
				rest = rest[n:]
			}
			if got := passed.String() + string(r.hold); got != stream {
				t.Fatalf("pieces of %d: %q became %q", size, stream, got)
			}
			if ends := strings.HasSuffix(stream, resetEnd); (string(r.hold) == resetEnd) != ends {
				t.Errorf("pieces of %d: %q leaves %q held", size, stream, r.hold)
			}
			if ends := skipped && strings.HasSuffix(stream, quitReply) && !strings.HasSuffix(stream, resetEnd); (string(r.hold) == quitReply) != ends {
				t.Errorf("pieces of %d, RESET is skipped: %q leaves %q held", size, stream, r.hold)
			}
		}
	}
}

// A client with a connection of its own that ends its sending direction gets what it has asked for,
// and then the end, as the server gives it.
func TestPinnedHalfClose(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	asked, answer := make(chan struct{}), make(chan struct{})
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		if args[0] == "GET" {
			close(asked)
			<-answer
		}
		return "+OK\r\n", args[0] == "MONITOR"
	})
	c := p.client()
	expect(t, c, "+OK\r\n", "MONITOR")
	c.SendCommand("GET", "k")
	<-asked
	s := p.only(t)
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	until(t, "the end to be met", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.waiters > 0 || s.closed })
	close(answer)
	if got, err := c.ReadReply(); err != nil || got != bulkReply("k") {
		t.Errorf("got %q, %v", got, err)
	}
	expectEnd(t, c)
	until(t, "the session to end", func() bool { return p.sessions.len() == 0 })
}

// A RESET that stands behind what blocks is not waited for when its client has left, however much
// stands behind it.
func TestPinnedLeavesBehindReset(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	f.script(func(_ *fakeConn, args []string) (string, bool) { return "+OK\r\n", args[0] == "MONITOR" })
	for i, behind := range []string{"", redistest.Command("PING"), strings.Repeat(redistest.Command("PING"), much/14)} {
		c := p.client()
		expect(t, c, "+OK\r\n", "MONITOR")
		if err := c.SendCommand("BLPOP", "k", "0"); err != nil {
			t.Fatal(err)
		}
		f.await(t, "BLPOP", i+1)
		f.blockedConn(t)
		f.setMute(true) // as a server is to one that blocks
		if err := c.Send(redistest.Command("RESET") + behind); err != nil {
			t.Fatal(err)
		}
		c.Close()
		until(t, "the session to end", func() bool { return p.sessions.len() == 0 })
		f.setMute(false)
	}
}

package proxy

import (
	"io"
	"strconv"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// linedUp is n clients that have written on one connection and ask there how far that has come, as WAIT 1,
// WAIT 2, and so on. The server has answered none; asked tells on which connection it has been asked what.
func linedUp(t *testing.T, f *fakeServer, p *testProxy, n int) (clients []*redistest.Client, asked chan waitSeen) {
	t.Helper()
	asked = make(chan waitSeen, n)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] != "WAIT" {
			return "", false
		}
		asked <- waitSeen{c, args[1]}
		return "", true
	})
	for range n {
		c := p.client()
		expect(t, c, bulkReply("k"), "SET", "k", "v")
		clients = append(clients, c)
	}
	for i, c := range clients {
		if err := c.SendCommand("WAIT", strconv.Itoa(i+1), "0"); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			f.await(t, "WAIT", 1)
			continue
		}
		until(t, "it to stand in line", func() bool { return p.asking() == i })
	}
	return clients, asked
}

type waitSeen struct {
	conn *fakeConn
	args string
}

// asking is how many stand in line.
func (p *testProxy) asking() (n int) {
	p.asked.mu.Lock()
	defer p.asked.mu.Unlock()
	for _, line := range p.asked.of {
		n += len(line)
	}
	return n
}

func patientUpstream(cfg *Config) { cfg.UpstreamWait = time.Minute }

// Who asks how far a connection has come that others have in their hands gets it in turn. A client that resets
// meanwhile is gone at once: hundreds of them would count as clients, and go on asking.
func TestAskersInTurn(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, patientUpstream)
	clients, asked := linedUp(t, f, p, 5)
	resets(clients[2])
	until(t, "it to be gone", func() bool { return p.sessions.len() == 4 && p.asking() == 3 })
	var first *fakeConn
	for _, i := range []int{0, 1, 3, 4} {
		got := <-asked
		if first == nil {
			first = got.conn
		}
		if got.conn != first || got.args != strconv.Itoa(i+1) {
			t.Fatalf("WAIT %s in the place of client %d's, on the same connection: %t", got.args, i, got.conn == first)
		}
		if _, err := io.WriteString(got.conn, ":"+got.args+"\r\n"); err != nil {
			t.Fatal(err)
		}
		expectReply(t, clients[i], ":"+got.args+"\r\n")
	}
	if n := p.asking(); n != 0 {
		t.Errorf("%d stand in line", n)
	}
	until(t, "the connection to be free", func() bool { return p.Stats().PrivateBusy == 0 })
}

// They hear at once that it is lost.
func TestAskersOfALostConnection(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, patientUpstream)
	clients, asked := linedUp(t, f, p, 3)
	if err := (<-asked).conn.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range clients[1:] {
		expectReply(t, c, string(waitLostReply))
	}
	if n := p.asking(); n != 0 {
		t.Errorf("%d stand in line", n)
	}
}

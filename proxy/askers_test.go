package proxy

import (
	"io"
	"strconv"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// linedUp is n clients that have written on one connection and ask there how far that has come, as WAIT 1,
// WAIT 2, and so on, for so many milliseconds. The server has answered none; asked tells on which connection it has been asked what.
func linedUp(t *testing.T, f *fakeServer, p *testProxy, n int, ms string) (clients []*redistest.Client, asked chan waitSeen) {
	t.Helper()
	asked = make(chan waitSeen, n)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] != "WAIT" {
			return "", false
		}
		asked <- waitSeen{c, args[1], args[2]}
		return "", true
	})
	for range n {
		c := p.client()
		expect(t, c, bulkReply("k"), "SET", "k", "v")
		clients = append(clients, c)
	}
	for i, c := range clients {
		if err := c.SendCommand("WAIT", strconv.Itoa(i+1), ms); err != nil {
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
	conn           *fakeConn
	replicas, time string
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
	clients, asked := linedUp(t, f, p, 5, "0")
	resets(clients[2])
	until(t, "it to be gone", func() bool { return p.sessions.len() == 4 && p.asking() == 3 })
	var first *fakeConn
	for _, i := range []int{0, 1, 3, 4} {
		got := <-asked
		if first == nil {
			first = got.conn
		}
		if got.conn != first || got.replicas != strconv.Itoa(i+1) {
			t.Fatalf("WAIT %s in the place of client %d's, on the same connection: %t", got.replicas, i, got.conn == first)
		}
		if _, err := io.WriteString(got.conn, ":"+got.replicas+"\r\n"); err != nil {
			t.Fatal(err)
		}
		expectReply(t, clients[i], ":"+got.replicas+"\r\n")
	}
	if n := p.asking(); n != 0 {
		t.Errorf("%d stand in line", n)
	}
	until(t, "the connection to be free", func() bool { return p.Stats().PrivateBusy == 0 })
}

// The time in line is of the WAIT's own: of many who wait for a replica that is away none waits longer than
// at the server.
func TestAskersTime(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, patientUpstream)
	_, asked := linedUp(t, f, p, 2, "60000")
	since := time.Now()
	until(t, "a moment to pass", func() bool { return time.Since(since) > 5*time.Millisecond })
	if _, err := io.WriteString((<-asked).conn, ":0\r\n"); err != nil {
		t.Fatal(err)
	}
	if left, _ := strconv.Atoi((<-asked).time); left < 1 || left > 59995 {
		t.Errorf("%d ms are left", left)
	}
}

// Whose time is over asks without waiting: the server has asked its replicas for another.
func TestAskersTimeIsOver(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, patientUpstream)
	_, asked := linedUp(t, f, p, 2, "5")
	since := time.Now()
	until(t, "the time to pass", func() bool { return time.Since(since) > 6*time.Millisecond })
	if _, err := io.WriteString((<-asked).conn, ":0\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got.replicas != "0" || got.time != "1" {
		t.Errorf("WAIT %s %s", got.replicas, got.time)
	}
}

// A client that resets before its write is answered asks nothing, and what stands behind is not executed.
func TestResetBeforeAWait(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	wrote := make(chan *fakeConn, 1)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] == "SET" {
			wrote <- c
		}
		return "", args[0] == "SET"
	})
	c := p.client()
	if err := c.Send(redistest.Command("SET", "k", "v") + redistest.Command("WAIT", "3", "0") + redistest.Command("GET", "k")); err != nil {
		t.Fatal(err)
	}
	conn, s := <-wrote, p.only(t)
	resets(c)
	until(t, "its end to be known", func() bool { return s.left.Load() })
	if _, err := io.WriteString(conn, "+OK\r\n"); err != nil {
		t.Fatal(err)
	}
	until(t, "the session to end", func() bool { return p.sessions.len() == 0 })
	if n := f.count("WAIT") + f.count("GET"); n != 0 {
		t.Errorf("the server has seen %d more commands", n)
	}
}

// They hear at once that it is lost.
func TestAskersOfALostConnection(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, patientUpstream)
	clients, asked := linedUp(t, f, p, 3, "0")
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

// A lane that has been retired with a WAIT is one client's, and no longer one of the lanes that there may be.
func TestWaitMakesRoomForALane(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(cfg *Config) { cfg.MaxLanes, cfg.PrivateMinIdle = 1, 0 })
	linedUp(t, f, p, 1, "0")
	expect(t, p.client(), bulkReply("k"), "GET", "k")
	if st := p.Stats(); st.Lanes != 2 || st.PrivateIdle != 0 {
		t.Errorf("%d lanes, %d private connections", st.Lanes, st.PrivateIdle)
	}
}

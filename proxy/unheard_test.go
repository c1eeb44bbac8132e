package proxy

import (
	"io"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
)

// tracked returns a client with a connection of its own whose GET of slow the test answers.
func tracked(t *testing.T, change func(*Config)) (p *testProxy, c *redistest.Client, asked chan *fakeConn) {
	t.Helper()
	f := startFake(t)
	asked = make(chan *fakeConn, 1)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		switch {
		case args[0] == "CLIENT" && args[1] == "TRACKING":
			return "+OK\r\n", true
		case args[0] == "GET" && args[1] == "slow":
			asked <- c
			return "", true
		}
		return "", false
	})
	p = startProxy(t, f, change)
	c = p.client()
	expect(t, c, "+OK\r\n", "CLIENT", "TRACKING", "ON")
	expect(t, c, bulkReply("a"), "GET", "a")
	return p, c, asked
}

// A client with a connection of its own gets what it waits for before a drain ends it, like any other.
func TestDrainHearsOutWhoHasItsOwnConnection(t *testing.T) {
	p, c, asked := tracked(t, func(c *Config) { c.DrainIdle = 20 * time.Millisecond })
	c.SendCommand("GET", "slow")
	conn := <-asked
	outcome := make(chan bool, 1)
	go func() { outcome <- p.Shutdown(t.Context()) }()
	until(t, "the drain to begin", p.draining.Load)
	select {
	case <-outcome:
		t.Error("the drain ended while a command was under way")
	case <-time.After(100 * time.Millisecond):
	}
	io.WriteString(conn, bulkReply("late"))
	expectReply(t, c, bulkReply("late"))
	expectEnd(t, c)
	c.Close()
	if !<-outcome {
		t.Error("not clean")
	}
}

// If it never gets that, the drain is not clean.
func TestDrainOfAnOwnConnectionThatIsSilent(t *testing.T) {
	p, c, asked := tracked(t, func(c *Config) { c.DrainIdle, c.DrainTimeout = 20*time.Millisecond, 100*time.Millisecond })
	c.SendCommand("GET", "slow")
	<-asked
	go func() { // a client that closes when it is told
		expectEnd(t, c)
		c.Close()
	}()
	if p.Shutdown(t.Context()) {
		t.Error("clean, though a command was never answered")
	}
}

// What blocks on a client's own connection has ended at the server before the client hears of the end,
// so that nothing is popped for nobody.
func TestDrainEndsWhatBlocksOnAnOwnConnection(t *testing.T) {
	s := redistest.Start(t)
	target, err := upstream.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, startFake(t), func(c *Config) { c.Upstream, c.DrainIdle = target, 20*time.Millisecond })
	c := p.client()
	expect(t, c, "+OK\r\n", "CLIENT", "TRACKING", "ON", "BCAST")
	c.SendCommand("BLPOP", "k", "0")
	until(t, "it to block", func() bool { return s.Info("clients", "blocked_clients") == "1" })
	outcome := make(chan bool, 1)
	go func() { outcome <- p.Shutdown(t.Context()) }()
	expectEnd(t, c)
	s.Do("RPUSH", "k", "v")
	if n := s.Do("LLEN", "k"); n != ":1\r\n" {
		t.Errorf("%q elements are left", n)
	}
	c.Close()
	if !<-outcome {
		t.Error("not clean")
	}
}

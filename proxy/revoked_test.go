package proxy

import (
	"fmt"
	"testing"

	"streamproxy/internal/redistest"
)

// revoke changes the password and ends all connections, as whoever revokes one does.
func (g *guarded) revoke() {
	g.setPassword("new")
	g.cut("")
}

// passesAs is a client that has proven a password.
func passesAs(t *testing.T, p *testProxy, password string) *redistest.Client {
	t.Helper()
	c := p.client()
	expect(t, c, "+OK\r\n", "AUTH", password)
	return c
}

// Clients that have proven a password which is good no longer get nothing of those that have proven
// the new one, and those are not ended along with them.
func TestRevokedPassword(t *testing.T) {
	g := startGuarded(t, "old")
	p := startProxy(t, g.fakeServer, nil)
	until(t, "the server to be known", func() bool { return p.health.up.Load() && p.locked.Load() })
	active, idle, three := passesAs(t, p, "old"), passesAs(t, p, "old"), p.client()
	expect(t, active, bulkReply("a"), "GET", "a")
	if got, err := three.Do("HELLO", "3", "AUTH", "default", "old"); err != nil || got[0] != '%' {
		t.Fatalf("HELLO: %q, %v", got, err)
	}
	expect(t, three, bulkReply("a"), "GET", "a")
	g.setPassword("new")
	proven := passesAs(t, p, "new") // before the others are refused
	expect(t, proven, bulkReply("a"), "GET", "a")
	g.cut("")
	for _, c := range []*redistest.Client{active, idle, three} {
		expectEnd(t, c)
	}
	until(t, "the lane of those that stay", func() bool { got, err := proven.Do("GET", "a"); return err == nil && got == bulkReply("a") })
	expect(t, p.client(), "-WRONGPASS\r\n", "AUTH", "old")
}

// Whatever needs a connection is answered with the server's refusal, once, and ends the session.
func TestRefusedInTheServersWords(t *testing.T) {
	const refusal = "-WRONGPASS\r\n"
	for _, command := range [][]string{
		{"GET", "a"}, {"FOO", "a"}, {"BLPOP", "a", "0"}, {"SELECT", "3"}, {"HELLO", "3"}, {"SUBSCRIBE", "a"}, {"MULTI"}, {"WATCH", "a"},
		{"WAIT", "0", "0"}, {"XREAD", "BLOCK", "0", "STREAMS", "s", "0"}, {"SCRIPT", "KILL"}, {"CLIENT", "KILL", "ID", "4503599627370496"},
		{"CLIENT", "UNBLOCK", "4503599627370496"}, {"SHUTDOWN"}, {"PROXY", "STATS"}, {"CLIENT", "TRACKING", "ON"},
	} {
		t.Run(fmt.Sprint(command), func(t *testing.T) {
			g := startGuarded(t, "old")
			p := startProxy(t, g.fakeServer, func(c *Config) { c.PrivateMinIdle = 0 })
			until(t, "the server to be known", func() bool { return p.health.up.Load() && p.locked.Load() })
			c := passesAs(t, p, "old")
			g.revoke()
			until(t, "the end of what was connected", func() bool { st := p.Stats(); return st.PrivateIdle == 0 && st.Lanes == 0 })
			proven := passesAs(t, p, "new")
			expect(t, proven, bulkReply("a"), "GET", "a")
			c.SendCommand(command...)
			c.SendCommand("GET", "behind")
			expectReply(t, c, refusal)
			expectEnd(t, c)
			expect(t, proven, bulkReply("a"), "GET", "a")
			if n := g.count("GET behind"); n != 0 {
				t.Error("what stands behind was sent")
			}
		})
	}
}

// A read that goes on over another connection when its own is lost ends with the refusal too, and
// does not ask again and again.
func TestRefusedWhileBlocked(t *testing.T) {
	g := startGuarded(t, "old")
	before := g.answer
	g.script(func(c *fakeConn, args []string) (string, bool) {
		if reply, handled := before(c, args); handled {
			return reply, true
		}
		return "", args[0] == "XREAD"
	})
	p := startProxy(t, g.fakeServer, func(c *Config) { c.PrivateMinIdle = 0 })
	until(t, "the server to be known", func() bool { return p.health.up.Load() && p.locked.Load() })
	c := passesAs(t, p, "old")
	c.SendCommand("XREAD", "BLOCK", "0", "STREAMS", "s", "0")
	c.SendCommand("GET", "behind")
	g.await(t, "XREAD", 1)
	g.setPassword("new")
	proven := passesAs(t, p, "new")
	g.cut("private")
	expectReply(t, c, "-WRONGPASS\r\n")
	expectEnd(t, c)
	if n := g.count("AUTH default old"); n > 2 { // the first proved it
		t.Errorf("asked %d times", n)
	}
	if n := g.count("XREAD") + g.count("GET behind"); n != 1 {
		t.Errorf("%d commands sent, want the first alone", n)
	}
	until(t, "the lane of who stays", func() bool { got, err := proven.Do("GET", "a"); return err == nil && got == bulkReply("a") })
}

// Two passwords that are good at a time serve their clients side by side, and the loss of one does
// not touch the other's.
func TestTwoPasswordsAtATime(t *testing.T) {
	good := map[string]bool{"one": true, "two": true}
	f := startFake(t)
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		switch {
		case args[0] == "AUTH" && good[args[len(args)-1]]:
			return "+OK\r\n", true
		case args[0] == "AUTH":
			return "-WRONGPASS\r\n", true
		}
		return "", false
	})
	p := startProxy(t, f, nil)
	one, two, late := p.client(), p.client(), p.client()
	expect(t, one, "+OK\r\n", "AUTH", "alice", "one")
	expect(t, two, "+OK\r\n", "AUTH", "alice", "two")
	expect(t, late, "+OK\r\n", "AUTH", "alice", "two")
	for range 2 {
		for _, c := range []*redistest.Client{one, two, late} {
			expect(t, c, bulkReply("a"), "GET", "a")
			expect(t, c, bulkReply("a"), "FOO", "a")
		}
	}
	if n := p.Stats().Lanes; n > 4 { // beside the one for newcomers
		t.Errorf("%d lanes, want one for each password", n)
	}
	f.mu.Lock()
	good["one"] = false
	f.mu.Unlock()
	f.cut("")
	expectEnd(t, one)
	for _, c := range []*redistest.Client{two, late} {
		until(t, "the others' lane", func() bool { got, err := c.Do("GET", "a"); return err == nil && got == bulkReply("a") })
	}
}

// A user whose name is empty is a user like others, and not the proxy's own.
func TestUserWithoutName(t *testing.T) {
	who := map[*fakeConn]string{}
	f := startFake(t)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		switch {
		case args[0] == "AUTH" && len(args) == 3 && args[1] == "" && args[2] == "right":
			who[c] = "nobody"
			return "+OK\r\n", true
		case args[0] == "WHO":
			return bulkReply(who[c]), true
		}
		return "", false
	})
	p := startProxy(t, f, nil)
	c := p.client()
	expect(t, c, bulkReply(""), "WHO")
	expect(t, c, "+OK\r\n", "AUTH", "", "right")
	expect(t, c, bulkReply("nobody"), "WHO")
}

// The connections for urgent commands of a user go with its last client.
func TestControlsGoWithTheirUser(t *testing.T) {
	g := startGuarded(t, "old")
	p := startProxy(t, g.fakeServer, nil)
	until(t, "the server to be known", func() bool { return p.health.up.Load() && p.locked.Load() })
	controls := func() (n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for key := range p.controls {
			if key.User.Proven() {
				n++
			}
		}
		return n
	}
	c := passesAs(t, p, "old")
	expect(t, c, bulkReply("KILL"), "SCRIPT", "KILL")
	if n := controls(); n != 1 {
		t.Fatalf("%d connections for urgent commands, want 1", n)
	}
	c.Close()
	until(t, "them to be closed", func() bool { return controls() == 0 })
}

// What a client had blocked that has left is called back though its password has been changed since:
// by whoever has proven the new one, and else by the end of its connection.
func TestCallBackAfterAChange(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("new one known %v", known), func(t *testing.T) {
			g := startGuarded(t, "old")
			p := startProxy(t, g.fakeServer, nil)
			until(t, "the server to be known", func() bool { return p.health.up.Load() && p.locked.Load() })
			p.fragile.Store(false)
			c := passesAs(t, p, "old")
			c.SendCommand("BLPOP", "k", "0")
			g.await(t, "BLPOP", 1)
			s := p.sessionOf(t, c)
			s.mu.Lock()
			id := s.active.conn.ID()
			s.mu.Unlock()
			g.setPassword("new")
			g.cut("control")
			if known {
				passesAs(t, p, "new")
			}
			c.Close()
			until(t, "the client to be gone", func() bool { return p.sessions.find(s.id) == nil })
			if n := g.count("CLIENT UNBLOCK"); known != (n > 0) {
				t.Errorf("called back %d times", n)
			}
			if !known {
				g.wait(t, "the end of its connection", func() bool { return g.conns[id] == nil })
			}
		})
	}
}

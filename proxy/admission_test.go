package proxy

import (
	"strings"
	"testing"
)

// guarded is a server that wants a password while it has one. Connections that were in when it
// got one stay in.
type guarded struct {
	*fakeServer
	password string
	in       map[*fakeConn]bool
}

func startGuarded(t *testing.T, password string) *guarded {
	g := &guarded{startFake(t), password, map[*fakeConn]bool{}}
	g.script(func(c *fakeConn, args []string) (string, bool) {
		hello := args[0] == "HELLO" && len(args) > 3 && args[2] == "AUTH"
		switch {
		case g.password == "":
			g.in[c] = true
		case (args[0] == "AUTH" || hello) && args[len(args)-1] != g.password:
			return "-WRONGPASS\r\n", true
		case args[0] == "AUTH":
			g.in[c] = true
			return "+OK\r\n", true
		case hello:
			g.in[c] = true
		case !g.in[c]:
			return noAuth, true
		}
		return "", false
	})
	return g
}

func (g *guarded) setPassword(password string) {
	g.mu.Lock()
	g.password = password
	g.mu.Unlock()
}

const noAuth = "-" + textNoAuth + "\r\n"

// A password that only the clients know lets them in, over every kind of connection; the server
// is there, and who has not proven anything gets nothing, of the proxy's own neither.
func TestPasswordOfClientsAlone(t *testing.T) {
	g := startGuarded(t, "secret")
	p := startProxy(t, g.fakeServer, nil)
	until(t, "the server to be known", func() bool { return p.health.up.Load() && p.locked.Load() })
	for _, auth := range [][]string{{"AUTH", "secret"}, {"AUTH", "default", "secret"}, {"HELLO", "3", "AUTH", "default", "secret"}} {
		c := p.client()
		for _, refused := range [][]string{
			{"GET", "a"}, {"CLIENT", "ID"}, {"CLIENT", "SETNAME", "n"}, {"SELECT", "0"}, {"PROXY", "STATS"}, {"PROXY", "CLIENTS"},
			{"INFO", "streamproxy"}, {"CLIENT", "KILL", "ID", "4503599627370496"}, {"CLIENT", "LIST", "ID", "4503599627370496"},
			{"CLIENT", "UNBLOCK", "4503599627370496"}, {"WATCH", "a"}, {"SUBSCRIBE", "a"},
		} {
			expect(t, c, noAuth, refused...)
		}
		expect(t, c, "-WRONGPASS\r\n", "AUTH", "guess")
		expect(t, c, noAuth, "GET", "a")
		if got, err := c.Do(auth...); err != nil || got[0] == '-' {
			t.Fatalf("%q: %q, %v", auth, got, err)
		}
		expect(t, c, bulkReply("a"), "GET", "a")
		expect(t, c, bulkReply("a"), "FOO", "a") // over a private connection
		expect(t, c, "+OK\r\n", "SELECT", "3")
		expect(t, c, bulkReply("a"), "GET", "a")
		if got, err := c.Do("PROXY", "STATS"); err != nil || !strings.Contains(got, "upstream_up:1") {
			t.Errorf("PROXY STATS: %q, %v", got, err)
		}
		expect(t, c, "+RESET\r\n", "RESET")
		expect(t, c, noAuth, "GET", "a")
	}
}

// A password that is set under way is asked of the clients that come from then on. Those that
// were in stay in; and when it is gone, so is the question.
func TestPasswordSetUnderWay(t *testing.T) {
	g := startGuarded(t, "")
	p := startProxy(t, g.fakeServer, nil)
	until(t, "the server to be known", p.health.up.Load)
	early := p.client()
	expect(t, early, bulkReply("a"), "GET", "a")
	g.setPassword("secret")
	p.checkNow()
	until(t, "the password to be noticed", p.locked.Load)
	late, proven := p.client(), p.client()
	expect(t, late, noAuth, "GET", "a")
	expect(t, early, bulkReply("a"), "GET", "a")
	expect(t, proven, "+OK\r\n", "AUTH", "secret")
	expect(t, proven, bulkReply("a"), "GET", "a")
	g.cut("")
	until(t, "a lane", func() bool { got, err := proven.Do("GET", "a"); return err == nil && got == bulkReply("a") })
	g.setPassword("")
	p.checkNow()
	until(t, "the end of the password to be noticed", func() bool { return !p.locked.Load() })
	expect(t, late, bulkReply("a"), "GET", "a")
}

// The first client with a password shows that there is one.
func TestPasswordIsNoticedByItsFirstUse(t *testing.T) {
	g := startGuarded(t, "")
	p := startProxy(t, g.fakeServer, nil)
	until(t, "the server to be known", p.health.up.Load)
	g.setPassword("secret")
	g.cut("control") // the connection on which it is asked has not been in
	expect(t, p.client(), "+OK\r\n", "AUTH", "secret")
	until(t, "the password to be noticed", p.locked.Load)
	expect(t, p.client(), noAuth, "GET", "a")
}

// Who may not kill at the server does not kill here.
func TestKillTakesTheRight(t *testing.T) {
	const refusal = "-NOPERM no permissions to run 'client|kill'\r\n"
	f := startFake(t)
	p := startProxy(t, f, nil)
	victim, c := p.client(), p.client()
	got, err := victim.Do("CLIENT", "ID")
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Trim(got, ":\r\n")
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		switch {
		case strings.EqualFold(args[0], "CLIENT") && args[1] == "KILL", len(args) > 2 && args[1] == "LIST" && args[3] == id:
			return refusal, true
		}
		return "", false
	})
	expect(t, c, refusal, "CLIENT", "KILL", "ID", id)
	expect(t, c, refusal, "CLIENT", "KILL", "SKIPME", "no", "ID", id)
	expect(t, c, refusal, "CLIENT", "LIST", "ID", id)
	expect(t, victim, refusal, "CLIENT", "KILL", "ID", id)
	expect(t, victim, bulkReply("a"), "GET", "a")
	f.script(nil)
	expect(t, c, ":1\r\n", "CLIENT", "KILL", "ID", id)
	expectEnd(t, victim)
}

package proxy

import (
	"strings"
	"testing"
	"time"

	"streamproxy/internal/upstream"
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
		hello, given := args[0] == "HELLO" && len(args) > 4 && args[2] == "AUTH", args[len(args)-1]
		if hello {
			given = args[4]
		}
		switch {
		case g.password == "":
			g.in[c] = true
		case (args[0] == "AUTH" || hello) && given != g.password:
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
	until(t, "it to be in", func() bool { got, err := late.Do("GET", "a"); return err == nil && got == bulkReply("a") })
}

// A dial that was let in before there was a password, and is done later, opens the door no more.
func TestAnOldDialDoesNotAdmit(t *testing.T) {
	p := startProxy(t, startFake(t), nil)
	until(t, "the server to be known", p.health.up.Load)
	key := upstream.Key{Proto: 2}
	p.noteAdmission(key, upstream.Greeting{NoAuth: true}, nil)
	p.noteAdmission(key, upstream.Greeting{Took: time.Minute}, nil)
	if !p.locked.Load() {
		t.Error("it does")
	}
	p.noteAdmission(key, upstream.Greeting{}, nil)
	if p.locked.Load() {
		t.Error("a new one does not")
	}
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

// What the proxy does for its own sake it does as the user whose password clients have proven,
// while one of them is there.
func TestOwnKey(t *testing.T) {
	g := startGuarded(t, "secret")
	p := startProxy(t, g.fakeServer, nil)
	until(t, "the server to be known", func() bool { return p.health.up.Load() && p.locked.Load() })
	timeReply := func() string {
		ctx, cancel := p.within(patience)
		defer cancel()
		replies, err := calls{p.Proxy}.Control(ctx, []byte("*1\r\n$4\r\nTIME\r\n"), 1)
		if err != nil {
			t.Fatal(err)
		}
		return string(replies[0])
	}
	if got := timeReply(); got != noAuth {
		t.Errorf("nobody has proven anything: %q", got)
	}
	c := p.client()
	expect(t, c, "+OK\r\n", "AUTH", "secret")
	if got := timeReply(); got != bulkReply("TIME") {
		t.Errorf("with a password: %q", got)
	}
	c.Close()
	until(t, "the client to be gone", func() bool { return p.sessions.len() == 0 })
	if got := timeReply(); got != noAuth {
		t.Errorf("with nobody there: %q", got)
	}
}

// What the server is like is learned with the first password that a client has proven, and a
// password that was changed since does not count as the server's absence.
func TestServerIsLearnedByAClientsPassword(t *testing.T) {
	g := startGuarded(t, "secret")
	before := g.answer
	g.script(func(c *fakeConn, args []string) (string, bool) {
		if reply, handled := before(c, args); handled {
			return reply, true
		}
		if args[0] == "CONFIG" && args[2] == "proto-max-bulk-len" {
			return "*2\r\n" + bulkReply(args[2]) + bulkReply("1048577"), true
		}
		return "", false
	})
	p := startProxy(t, g.fakeServer, nil)
	until(t, "the server to be known", func() bool { return p.health.up.Load() && p.locked.Load() })
	c := p.client()
	expect(t, c, "+OK\r\n", "AUTH", "secret")
	until(t, "what it is like", func() bool { return p.maxBulk.Load() == 1048577 })
	expect(t, c, bulkReply("a"), "GET", "a")
	g.setPassword("other")
	g.cut("control")
	p.health.doubted.Store(true)
	p.checkNow()
	g.await(t, "HELLO 3 AUTH default secret", 1) // those that are right are not counted
	if !p.health.up.Load() || !p.locked.Load() {
		t.Error("a password that is not right any more takes the server away")
	}
	expect(t, c, bulkReply("a"), "GET", "a")
}

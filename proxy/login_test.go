package proxy

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"streamproxy/internal/redistest"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
)

// What the server gets for what a client says on a connection of its own, where --requirepass-file
// decides and no other password is given: the proxy's own credentials, or ones that it refuses.
func TestVet(t *testing.T) {
	const refused = "streamproxy:"
	plain := upstream.Target{}
	named := upstream.Target{User: "app", Password: func() (string, error) { return "up", nil }}
	for line, want := range map[string][2]string{
		"AUTH pw":                                {"AUTH default ''", "AUTH app up"},
		"auth default pw":                        {"auth default ''", "auth app up"},
		"AUTH x":                                 {"AUTH " + refused + " ''", ""},
		"AUTH default up":                        {"AUTH " + refused + " ''", ""},
		"AUTH":                                   {"AUTH", ""},
		"AUTH a default pw":                      {"AUTH a default pw", ""},
		"HELLO":                                  {"HELLO", ""},
		"HELLO 3":                                {"HELLO 3", ""},
		"HELLO 3 AUTH default":                   {"HELLO 3 AUTH default", ""},
		"HELLO 3 SETNAME AUTH":                   {"HELLO 3 SETNAME AUTH", ""},
		"HELLO AUTH default x":                   {"HELLO AUTH default x", ""},
		"hello 3 auth default pw setname n":      {"hello 3 auth default '' setname n", "hello 3 auth app up setname n"},
		"HELLO 3 SETNAME n AUTH default x":       {"HELLO 3 SETNAME n AUTH " + refused + " ''", ""},
		"HELLO 2 AUTH default x JUNK":            {"HELLO 2 AUTH " + refused + " '' JUNK", ""},
		"HELLO 2 JUNK AUTH default x":            {"HELLO 2 JUNK AUTH default x", ""},
		"HELLO 3 AUTH default x AUTH default pw": {"AUTH too many arguments", ""},
	} {
		for i, target := range []upstream.Target{plain, named} {
			if want[i] == "" {
				want[i] = want[0]
			}
			p := &Proxy{identities: newIdentities()}
			p.cfg.Upstream, p.cfg.RequirePass = target, func() (string, error) { return "pw", nil }
			cmd := spelled(line)
			got, ok := failing(p).vet(cmd, DefaultTable().Classify(cmd).Verb)
			sent := spelled(strings.ReplaceAll(want[i], refused, p.identities.nobody.user)).Raw
			if !ok || !bytes.Equal(got, sent) {
				t.Errorf("%s: %v, %q, want %q", line, ok, got, sent)
			}
		}
	}
}

// spelled is a command as it is sent.
func spelled(line string) resp.Command {
	c := words(line)
	args := make([]string, c.Len())
	for i := range args {
		args[i] = string(c.Arg(i))
	}
	scan := resp.NewCommandScanner(resp.DefaultLimits())
	raw := []byte(redistest.Command(args...))
	_, _, _ = scan.Scan(raw) // it is one
	return resp.Command{Raw: raw, Args: scan.Args()}
}

// Credentials that the proxy cannot compare with what it was given, because that cannot be read,
// are wrong where clients' are concerned, and end the session where the proxy's own are.
func TestVetWithoutSecrets(t *testing.T) {
	unreadable := func() (string, error) { return "", errors.New("no such file") }
	readable := func() (string, error) { return "pw", nil }
	for _, tt := range []struct {
		ask, own func() (string, error)
		ok       bool
	}{{unreadable, readable, true}, {readable, unreadable, false}} {
		p := &Proxy{identities: newIdentities(), log: slog.New(slog.DiscardHandler)}
		p.cfg.Upstream.Password, p.cfg.RequirePass = tt.own, tt.ask
		s := failing(p)
		got, ok := s.vet(spelled("AUTH pw"), VerbAuth)
		if ok != tt.ok || ok == s.ending || ok && !strings.Contains(string(got), p.identities.nobody.user) {
			t.Errorf("%v, %q, ending %v", ok, got, s.ending)
		}
	}
}

// Who guesses on a connection of its own is slowed down like anybody else.
func TestVetKeepsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Proxy{identities: newIdentities()}
		p.cfg.RequirePass = func() (string, error) { return "pw", nil }
		s := failing(p)
		began := time.Now()
		for range sessionFailureBurst + 4 {
			s.vet(spelled("AUTH guess"), VerbAuth)
		}
		for range 3 {
			s.vet(spelled("HELLO 3 AUTH default guess AUTH default guess"), VerbHello)
		}
		for range 3 {
			s.wrongLogin()
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("ten more than are free take %v", took)
		}
	})
}

// door is a server with a user without a password and one with; it obeys HELLO word by word.
func door(f *fakeServer) {
	users := map[*fakeConn]string{}
	f.script(func(c *fakeConn, args []string) (string, bool) {
		login := func(user, password string) string {
			if user != "default" && (user != "weak" || password != "wp") {
				return "-WRONGPASS the server says so\r\n"
			}
			users[c] = user
			return "+OK\r\n"
		}
		switch strings.ToUpper(args[0]) {
		case "AUTH":
			return login(args[len(args)-2], args[len(args)-1]), true
		case "HELLO":
			for i := 2; i+2 < len(args); i += 2 {
				if args[i] == "AUTH" {
					if got := login(args[i+1], args[i+2]); got != "+OK\r\n" {
						return got, true
					}
					i++
				}
			}
			if args[len(args)-1] == "JUNK" {
				return "-ERR Syntax error in HELLO option 'JUNK'\r\n", true
			}
		case "WHOAMI":
			return "+" + users[c] + "\r\n", true
		case "WATCH", "UNWATCH":
			return "+OK\r\n", true
		}
		return "", false
	})
}

// Wrong credentials are counted, and refused in the server's words, however a client has come to
// a connection of its own and however they are sent; then it is still who it was.
func TestLoginsOnConnectionsOfTheirOwn(t *testing.T) {
	f := startFake(t)
	door(f)
	p := startProxy(t, f, func(c *Config) { c.RequirePass = func() (string, error) { return "pw", nil } })
	p.identities.failures = rate.NewLimiter(0, failureBurst)
	guesses := map[string]string{
		"AUTH":                redistest.Command("AUTH", "default", "x"),
		"AUTH without a name": redistest.Command("AUTH", "x"),
		"AUTH of another":     redistest.Command("AUTH", "other", "x"),
		"AUTH inline":         "auth \"def\\x61ult\" x\r\n",
		"AUTH that is large":  redistest.Command("AUTH", "default", strings.Repeat("x", 2*largeCommand)),
		"HELLO":               redistest.Command("HELLO", "2", "AUTH", "default", "x"),
		"HELLO with junk":     redistest.Command("HELLO", "2", "AUTH", "default", "x", "JUNK"),
		"HELLO with two":      redistest.Command("HELLO", "2", "AUTH", "weak", "wp", "AUTH", "default", "x"),
		"HELLO that is large": redistest.Command(append([]string{"HELLO", "2", "AUTH", "default", "x"}, make([]string, largeCommand)...)...),
	}
	for name, guess := range guesses {
		for _, enter := range []string{"", "MONITOR", "WATCH"} {
			before := p.identities.failures.Tokens()
			c := p.client()
			expect(t, c, "+OK\r\n", "AUTH", "weak", "wp")
			if enter != "" {
				if _, err := c.Do(enter); err != nil {
					t.Fatal(err)
				}
			}
			for _, piece := range []string{guess[:8], guess[8:]} {
				if err := c.Send(piece); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := c.ReadReply(); err != nil || !strings.HasPrefix(got, "-WRONGPASS") {
				t.Errorf("%s after %q: %.80q, %v", name, enter, got, err)
			}
			expect(t, c, "+weak\r\n", "WHOAMI")
			if n := before - p.identities.failures.Tokens(); n != 1 {
				t.Errorf("%s after %q: %v failures are counted", name, enter, n)
			}
			c.Close()
		}
	}
	c := p.client()
	expect(t, c, "+OK\r\n", "AUTH", "weak", "wp")
	expect(t, c, bulkReply("MONITOR"), "MONITOR")
	expect(t, c, "+OK\r\n", "AUTH", "pw")
	expect(t, c, "+default\r\n", "WHOAMI")
	expect(t, c, "+OK\r\n", "AUTH", "weak", "wp")
	expect(t, c, "+weak\r\n", "WHOAMI")
}

// A client keeps its database when it becomes a user who may not SELECT, as at the server, and what
// stands behind in its pipeline is that user's. One that has not said yet who it is stays outside.
func TestLoginsOfUsersWhoMayNotSelect(t *testing.T) {
	f := startFake(t)
	users, places := map[*fakeConn]string{}, map[*fakeConn]string{}
	f.script(func(c *fakeConn, args []string) (string, bool) {
		switch strings.ToUpper(args[0]) {
		case "AUTH", "HELLO":
			if len(args) < 3 || args[len(args)-3] != "AUTH" {
				return "", false // of the proxy itself
			}
			if args[len(args)-1] != "pb" {
				return "-WRONGPASS the server says so\r\n", true
			}
			users[c] = "bob"
			return "+OK\r\n", true
		case "SELECT":
			if users[c] == "bob" {
				return "-NOPERM no SELECT\r\n", true
			}
			places[c] = args[1]
			return "+OK\r\n", true
		case "WHERE":
			return "+" + users[c] + places[c] + "\r\n", true
		}
		return "", false
	})
	p := startProxy(t, f, nil)
	for _, login := range [][]string{{"AUTH", "bob", "pb"}, {"HELLO", "2", "AUTH", "bob", "pb"}} {
		c := p.client()
		expect(t, c, "+OK\r\n", "SELECT", "3")
		expect(t, c, "-WRONGPASS the server says so\r\n", "AUTH", "bob", "x")
		expect(t, c, "+3\r\n", "WHERE")
		where := redistest.Command("WHERE")
		if err := c.Send(where + redistest.Command(login...) + where + where); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"+3\r\n", "+OK\r\n", "+bob3\r\n", "+bob3\r\n"} {
			expectReply(t, c, want)
		}
		expect(t, c, "-WRONGPASS the server says so\r\n", "AUTH", "bob", "x")
		expect(t, c, "-NOPERM no SELECT\r\n", "SELECT", "0")
		expect(t, c, "+bob3\r\n", "WHERE")
	}
	others := p.client()
	expect(t, others, "+OK\r\n", "SELECT", "3")
	expect(t, others, "+3\r\n", "WHERE")

	p = startProxy(t, f, func(c *Config) {
		c.RequirePass = func() (string, error) { return "pw", nil }
		c.Upstream.DB = 3
	})
	c := p.client()
	if err := c.Send(redistest.Command("AUTH", "bob", "pb") + redistest.Command("WHERE")); err != nil {
		t.Fatal(err)
	}
	expectReply(t, c, "-NOPERM no SELECT\r\n")
	expectReply(t, c, string(noAuthReply))
}

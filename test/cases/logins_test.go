//go:build cases

package cases

import (
	"slices"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// Where the server's default user has no password, --requirepass-file is all that stands between a
// client and that user: whoever is in as another does not get past it, from whatever connection, in
// whatever form. Who has the password is let in everywhere.
func TestRequirePassHoldsOnEveryConnection(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("ACL", "SETUSER", "weak", "on", ">wp", "~weak:*", "&*", "+@all")
	s.Do("SET", "secret", "TOPSECRET")
	f := startProxy(t, s.Addr(), func(c *proxy.Config) {
		c.RequirePass = func() (string, error) { return "pw", nil }
	})
	ways := map[string][]string{
		"nothing special":          {},
		"subscribed":               {"HELLO 3", "SUBSCRIBE weak:q"},
		"tracking":                 {"HELLO 3", "CLIENT TRACKING ON"},
		"kept from eviction":       {"CLIENT NO-EVICT ON"},
		"watching":                 {"WATCH weak:k"},
		"in a transaction":         {"MULTI"},
		"tracking, in transaction": {"CLIENT NO-EVICT ON", "MULTI"},
	}
	tries := []string{
		"RESET", "AUTH default x", "AUTH x", "HELLO 3 AUTH default x", "HELLO 3 AUTH default x JUNK", "AUTH default xxxx",
		"HELLO 3 AUTH default xxxx", "HELLO 3 AUTH weak wp AUTH default x",
	}
	for how, enter := range ways {
		for _, try := range tries {
			pieces := [][]string{{spoken([]string{try})}, cutUp(spoken([]string{try}))}
			if !strings.Contains(try, "xxxx") {
				pieces = append(pieces, []string{try + "\r\n"}, cutUp(try+"\r\n"))
			}
			for _, form := range pieces {
				c := f.client()
				c.gets("+OK\r\n", "AUTH", "weak", "wp")
				c.sends(spoken(enter))
				for _, piece := range form {
					c.sends(piece)
				}
				c.sends(spoken([]string{"GET secret", "EXEC", "GET secret", "QUIT"}))
				if said := untilEnd(c); strings.Contains(said, "TOPSECRET") {
					t.Errorf("%s, %s in %d pieces: %.300q", how, try, len(form), said)
				}
			}
		}
		for _, login := range []string{"AUTH pw", "AUTH default pw", "HELLO 3 AUTH default pw"} {
			c := f.client()
			c.gets("+OK\r\n", "AUTH", "weak", "wp")
			c.sends(spoken(slices.Concat(enter, []string{login, "EXEC", "GET secret", "QUIT"})))
			if said := untilEnd(c); !strings.Contains(said, "TOPSECRET") {
				t.Errorf("%s: who has the password is not let in by %s: %.300q", how, login, said)
			}
		}
	}
}

// Nobody is served by a connection that a large command of another has changed.
func TestLargeLoginsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	s := aclServer(t)
	f := startProxy(t, s.Addr())
	c := f.client()
	c.gets("+OK\r\n", "AUTH", "alice", "alice-1")
	junk := slices.Repeat([]string{"SETNAME", "a"}, 10_000)
	raw := redistest.Command(append(append([]string{"HELLO", "3", "AUTH", "bob", "bob-1"}, junk...), "JUNK")...)
	header := strings.IndexByte(raw, '$')
	c.sends(raw[:header])
	c.sends(raw[header:])
	c.replies(wrongPass)
	isWholly(t, c, "alice", "alice:k")
}

// A client keeps its database when it becomes a user who may not SELECT. RESET makes it anybody's again.
func TestLoginsKeepTheDatabase(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("ACL", "SETUSER", "bob", "on", ">bp", "~*", "&*", "+@all", "-select")
	f := startProxy(t, s.Addr())
	for _, login := range []string{"AUTH bob bp", "HELLO 2 AUTH bob bp", "HELLO 3 AUTH bob bp SETNAME b"} {
		c := f.client()
		c.sends(spoken([]string{"SELECT 3", "SET k 3", login, "ACL WHOAMI", "GET k", "SELECT 0", "RESET", "ACL WHOAMI", "GET k", "QUIT"}))
		said := untilEnd(c)
		rest := said
		for _, want := range []string{"+OK\r\n+OK\r\n", bulk("bob") + bulk("3"), "-NOPERM", "+RESET\r\n" + bulk("default")} {
			_, behind, found := strings.Cut(rest, want)
			if !found {
				t.Fatalf("%s: no %q in %q", login, want, said)
			}
			rest = behind
		}
	}
}

// An AUTH or HELLO that is too long to be judged is refused in its place: on a connection of the
// client's own, too, where no reply may be missing.
func TestLoginsThatAreTooLongAreRefusedInTheirPlace(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s := redistest.Start(t)
		f := startProxy(t, s.Addr())
		long := strings.Repeat("x", 70<<10)
		for _, first := range [][]string{{"ECHO", "first"}, {"CLIENT", "NO-EVICT", "ON"}, {"CLIENT", "TRACKING", "ON"}, {"UNSUBSCRIBE"}} {
			for _, login := range [][]string{{"HELLO", "3", long}, {"AUTH", "alice", long}, {"AUTH", "alice", "pa", long}} {
				c := connect(t, f.tcp)
				c.sends(pipeline([]string{"ECHO", "before"}, first, login, []string{"ECHO", "behind"}, []string{"PING"}))
				c.replies(bulk("before"))
				for i, got := range []string{c.reply(), c.reply(), c.reply(), c.reply()} {
					if (got[0] == '-') != (i == 1) {
						t.Errorf("%v, %s: reply %d is %.80q", first, login[0], i+1, got)
					}
				}
				c.silent()
				_ = c.Close()
			}
		}
	})
}

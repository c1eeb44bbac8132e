//go:build cases

package cases

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// revocations are the ways in which a password is made to count no longer for who is in with it.
var revocations = map[string]func(s *redistest.Server){
	"changed, and clients killed": func(s *redistest.Server) {
		s.Do("ACL", "SETUSER", "alice", "resetpass", ">alice-2")
		s.Do("CLIENT", "KILL", "USER", "alice")
	},
	"deleted and made anew": func(s *redistest.Server) {
		admin := s.Client()
		defer admin.Close()
		_ = admin.Send(pipeline([]string{"MULTI"}, []string{"ACL", "DELUSER", "alice"},
			[]string{"ACL", "SETUSER", "alice", "on", ">alice-2", "~alice:*", "&*", "+@all"}, []string{"EXEC"}))
		for range 4 {
			_, _ = admin.ReadReply()
		}
	},
}

// Who has proven a password that was revoked executes nothing more, whatever it was in the middle of
// and though others are in with the new one, who notice nothing.
func TestRevokedPasswords(t *testing.T) {
	t.Parallel()
	for name, revoke := range revocations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := aclServer(t)
			f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.PrivateMinIdle = 0 })
			s.Do("XGROUP", "CREATE", "alice:s", "g", "$", "MKSTREAM")
			doing := map[string]func(c *client){
				"nothing":       func(*client) {},
				"served":        func(c *client) { isWholly(t, c, "alice", "alice:k") },
				"in protocol 3": func(c *client) { c.ask("HELLO", "3"); c.ask("GET", "alice:k") },
				"in database 3": func(c *client) { c.gets("+OK\r\n", "SELECT", "3"); c.ask("GET", "alice:k") },
				"subscribed":    func(c *client) { c.ask("SUBSCRIBE", "c") },
				"blocked":       func(c *client) { c.sends(redistest.Command("BLPOP", "alice:none", "0")) },
				"reading":       func(c *client) { c.sends(redistest.Command("XREAD", "BLOCK", "0", "STREAMS", "alice:s", "0-0")) },
				"reading groups": func(c *client) {
					c.sends(redistest.Command("XREADGROUP", "GROUP", "g", "w", "BLOCK", "0", "STREAMS", "alice:s", ">"))
				},
				"queueing": func(c *client) { c.gets("+OK\r\n", "MULTI"); c.ask("SET", "alice:by", "old") },
				"watching": func(c *client) { c.gets("+OK\r\n", "WATCH", "alice:k") },
			}
			old := map[string]*client{}
			for what, begin := range doing {
				c := f.client()
				c.gets("+OK\r\n", "AUTH", "alice", "alice-1")
				begin(c)
				old[what] = c
			}
			blockedClients(t, &client{s.Client(), t}, "3")
			revoke(s)
			proven := f.client()
			proven.gets("+OK\r\n", "AUTH", "alice", "alice-2")
			isWholly(t, proven, "alice", "alice:k")
			for what, c := range old {
				for _, command := range [][]string{{"SET", "alice:by", "old"}, {"EXEC"}, {"BLPOP", "alice:none", "0.01"}, {"GET", "alice:k"}} {
					_ = c.Send(redistest.Command(command...)) // it may have ended
				}
				got, err := "", error(nil)
				for err == nil {
					if got, err = c.ReadReply(); err == nil && got[0] != '-' {
						t.Errorf("%s: executed: %q", what, got)
					}
				}
				if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") && !strings.Contains(err.Error(), "pipe") {
					t.Errorf("%s: %v, want the end of the connection", what, err)
				}
			}
			proven.gets("$-1\r\n", "GET", "alice:by")
			isWholly(t, proven, "alice", "alice:k")
			f.client().gets(wrongPass, "AUTH", "alice", "alice-1")
		})
	}
}

// A right password is let in at once, also at the moment when those who have the one before are
// refused.
func TestNewPasswordWhileTheOldIsRefused(t *testing.T) {
	t.Parallel()
	s := aclServer(t)
	f := startProxy(t, s.Addr())
	was := "alice-1"
	for i := range 15 {
		for range 4 {
			c := f.client()
			c.gets("+OK\r\n", "AUTH", "alice", was)
			c.gets("$-1\r\n", "GET", "alice:k")
			if i%2 == 1 {
				defer c.Close()
				_ = c.Send(redistest.Command("GET", "alice:k"))
			}
		}
		was += "x"
		admin := s.Client()
		_ = admin.Send(pipeline([]string{"MULTI"}, []string{"ACL", "SETUSER", "alice", "resetpass", ">" + was},
			[]string{"CLIENT", "KILL", "USER", "alice"}, []string{"EXEC"}))
		for range 4 {
			_, _ = admin.ReadReply()
		}
		admin.Close()
		c := f.client()
		c.gets("+OK\r\n", "AUTH", "alice", was)
		c.gets("$-1\r\n", "GET", "alice:k")
	}
}

// A user whose name is empty is that user, and not the proxy's.
func TestUserWithoutName(t *testing.T) {
	t.Parallel()
	s := aclServer(t)
	s.Do("ACL", "SETUSER", "", "on", ">nameless", "~:*", "+get", "+hello", "+ping")
	f := startProxy(t, s.Addr())
	for _, proto := range []string{"2", "3"} {
		c := f.client()
		if got := c.ask("HELLO", proto, "AUTH", "", "nameless"); got[0] == '-' {
			t.Fatalf("HELLO: %q", got)
		}
		if got := c.ask("SET", "k", "v"); !strings.HasPrefix(got, "-NOPERM ") {
			t.Errorf("SET: %q", got)
		}
		if got := c.ask("BLPOP", "k", "0.01"); !strings.HasPrefix(got, "-NOPERM ") {
			t.Errorf("BLPOP: %q", got)
		}
	}
	f.client().gets("$-1\r\n", "GET", "k")
}

// inAnother is a client in database 2 as a user who may do everything, u.
func inAnother(s *redistest.Server, f *front) *client {
	s.Do("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all")
	c := f.client()
	c.gets("+OK\r\n", "AUTH", "u", "p")
	c.gets("+OK\r\n", "SELECT", "2")
	return c
}

// Who may no longer SELECT where it is hears so at once of what needs one more connection, and goes on
// with the rest; and with all of it when it may again.
func TestRevokedSelect(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s := redistest.Start(t)
		f := startProxy(t, s.Addr())
		c := inAnother(s, f)
		c.gets("+OK\r\n", "SET", "k", "v")
		s.Do("ACL", "SETUSER", "u", "-select")
		start := time.Now()
		for _, command := range []string{"WATCH k", "BLPOP none 0.1", "MULTI"} {
			const barred = "-NOPERM streamproxy: the user may no longer SELECT this database; command not sent\r\n"
			c.gets(barred, strings.Fields(command)...)
			c.gets(bulk("v"), "GET", "k")
			c.sends(pipeline(strings.Fields(command), []string{"GET", "k"}))
			c.replies(barred, barred)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("that took %v", took)
		}
		s.Do("ACL", "SETUSER", "u", "+select")
		c.gets("+OK\r\n", "WATCH", "k")
		c.gets("+OK\r\n", "UNWATCH")
	})
}

// Whoever may not SELECT stays in its database, though others of that user have connections elsewhere.
// HELLO is not answered with a refusal of what nobody asked for.
func TestRevokedSelectConfines(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s := redistest.Start(t)
		f := startProxy(t, s.Addr())
		old := inAnother(s, f)
		old.gets("+OK\r\n", "SET", "k", "two")
		old.gets("+OK\r\n", "SELECT", "0")
		old.gets("+OK\r\n", "SET", "k", "zero")
		s.Do("ACL", "SETUSER", "u", "-select")
		var c *client
		eventually(t, "SELECT to be refused", func() bool { // what was allowed a moment ago is not asked again
			c = connect(t, f.tcp)
			c.gets("+OK\r\n", "AUTH", "u", "p")
			return strings.HasPrefix(c.ask("SELECT", "2"), "-NOPERM ")
		})
		c.gets(bulk("zero"), "GET", "k")
		if got := old.ask("SELECT", "2"); !strings.HasPrefix(got, "-NOPERM ") {
			t.Errorf("who was there before: %q", got)
		}
		old.gets(bulk("zero"), "GET", "k")
		s.Do("ACL", "SETUSER", "u", "+select")
		old.gets("+OK\r\n", "SELECT", "2")
		old.gets(bulk("two"), "GET", "k")
		s.Do("ACL", "SETUSER", "u", "-select")
		old.sends(pipeline([]string{"HELLO", "3"}))
		old.ends()
	})
}

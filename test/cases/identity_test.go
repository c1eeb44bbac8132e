//go:build cases

package cases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// aclServer has two users who may touch only keys of their own.
func aclServer(t *testing.T) *redistest.Server {
	t.Helper()
	s := redistest.Start(t)
	for _, name := range []string{"alice", "bob"} {
		s.Do("ACL", "SETUSER", name, "on", ">"+name+"-1", "~"+name+":*", "&*", "+@all")
	}
	return s
}

const (
	wrongPass = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	noPerm    = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
)

// Each client is who it proved to be, by AUTH or HELLO, in everything it does, over every kind of
// connection, and nobody else becomes so. Clients of one user share a lane, those of two do not.
func TestIdentitiesAreKeptApart(t *testing.T) {
	t.Parallel()
	s := aclServer(t)
	f := startProxy(t, s.Addr())
	nobody, alice, bob := f.client(), f.client(), f.client()
	alice.gets(wrongPass, "AUTH", "alice", "wrong")
	alice.gets(bulk("default"), "ACL", "WHOAMI")
	alice.gets("+OK\r\n", "AUTH", "alice", "alice-1")
	if got := bob.ask("HELLO", "3", "AUTH", "bob", "bob-1", "SETNAME", "b"); got[0] != '%' {
		t.Fatalf("HELLO: %q", got)
	}
	for range 3 {
		for _, who := range []struct {
			c                *client
			name, own, other string
		}{{nobody, "default", "k", "alice:k"}, {alice, "alice", "alice:k", "bob:k"}, {bob, "bob", "bob:k", "alice:k"}} {
			isWholly(t, who.c, who.name, who.own)
			if who.name != "default" {
				who.c.gets(noPerm, "SET", who.other, "stolen")
				who.c.gets(noPerm, "BLPOP", who.other, "1")
			}
		}
	}
	second := f.client()
	second.gets("+OK\r\n", "AUTH", "alice", "alice-1")
	isWholly(t, second, "alice", "alice:k2")
	if lanes := f.Stats().Lanes; lanes > 6 { // with those of newcomers
		t.Errorf("%d lanes for three users, want no more than 6", lanes)
	}
	alice.gets(wrongPass, "AUTH", "bob", "alice-1")
	isWholly(t, alice, "alice", "alice:k")
	alice.gets("+RESET\r\n", "RESET")
	isWholly(t, alice, "default", "k")
}

// isWholly checks who a client is over the lane, a private connection, a transaction, and a
// connection that takes large values.
func isWholly(t *testing.T, c *client, user, key string) {
	t.Helper()
	c.gets(bulk(user), "ACL", "WHOAMI")
	c.gets("+OK\r\n", "SET", key, "v")
	c.gets("+OK\r\n", "SET", key, strings.Repeat("x", 100_000))
	c.gets("+OK\r\n", "WATCH", key)
	c.gets(bulk(user), "ACL", "WHOAMI")
	c.gets("+OK\r\n", "MULTI")
	c.gets("+QUEUED\r\n", "ACL", "WHOAMI")
	c.gets("*1\r\n"+bulk(user), "EXEC")
	c.sends(pipeline([]string{"MULTI"}, []string{"ACL", "WHOAMI"}, []string{"EXEC"}))
	c.replies("+OK\r\n", "+QUEUED\r\n", "*1\r\n"+bulk(user))
	if got := c.ask("CLIENT", "INFO"); !strings.Contains(got, " user="+user+" ") {
		t.Errorf("CLIENT INFO of %s: %q", user, got)
	}
	c.gets(":1\r\n", "DEL", key)
	c.gets(":1\r\n", "RPUSH", key, "x")
	if got := c.ask("BLPOP", key, "1"); !strings.HasSuffix(got, bulk("x")) {
		t.Errorf("BLPOP of %s: %q", user, got)
	}
}

// With a name a user who needs no password is let in by any, without one the server refuses it. What
// one form has proven a moment ago is no answer to the other.
func TestFormsOfAuth(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		for _, needed := range []string{"", "any"} {
			s := redistest.Start(t)
			s.Do("CONFIG", "SET", "requirepass", needed)
			f := startProxy(t, s.Addr())
			stays := f.client() // with it stays what it has proven
			stays.gets("+OK\r\n", "AUTH", "default", "any")
			for _, question := range [][]string{
				{"AUTH", "any"}, {"AUTH", "default", "any"}, {"AUTH", "any"}, {"HELLO", "2", "AUTH", "default", "any"}, {"AUTH", "any"},
			} {
				want := connect(t, s.Addr()).ask(question...)
				got := f.client().ask(question...)
				if question[0] == "HELLO" {
					got, want = got[:1], want[:1] // the rest is about the connection
				}
				if got != want {
					t.Errorf("%v, the password being %q: got %q, want %q", question, needed, got, want)
				}
			}
			if got, want := stays.ask("AUTH", "any"), connect(t, s.Addr()).ask("AUTH", "any"); got != want {
				t.Errorf("the password being %q, the same client without a name: got %q, want %q", needed, got, want)
			}
		}
	})
}

// A changed password lets the new one in at once. Sessions that are there go on by the connections
// that are there, each by those of its own password, and end with them. A user that is gone
// is nobody: its clients are closed, as the server closes its own, and nothing runs as anybody else.
func TestChangedPasswords(t *testing.T) {
	t.Parallel()
	s := aclServer(t)
	f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.UpstreamWait = 2 * time.Second })
	early, late := f.client(), f.client()
	early.gets("+OK\r\n", "AUTH", "alice", "alice-1")
	s.Do("ACL", "SETUSER", "alice", "<alice-1", ">alice-2")
	early.gets("+OK\r\n", "SET", "alice:k", "v")
	early.gets(bulk("alice"), "ACL", "WHOAMI")
	early.gets(":1\r\n", "DEL", "alice:k")
	late.gets(wrongPass, "AUTH", "alice", "guess")
	late.gets("+OK\r\n", "AUTH", "alice", "alice-2")
	isWholly(t, late, "alice", "alice:k")
	s.Do("CLIENT", "KILL", "USER", "alice")
	early.ends()
	eventually(t, "alice is back", func() bool { return late.ask("ACL", "WHOAMI") == bulk("alice") })
	isWholly(t, late, "alice", "alice:k")
	idle, blocked := f.client(), f.client()
	idle.gets("+OK\r\n", "AUTH", "alice", "alice-2")
	blocked.gets("+OK\r\n", "AUTH", "alice", "alice-2")
	blocked.sends(redistest.Command("BLPOP", "alice:none", "0"))
	blockedClients(t, &client{s.Client(), t}, "1")
	other := f.client()
	s.Do("ACL", "DELUSER", "alice")
	idle.ends()
	blocked.replies(unknownOutcome)
	for _, c := range []*client{blocked, late} {
		c.ends()
	}
	other.gets(wrongPass, "AUTH", "alice", "alice-2")
	isWholly(t, other, "default", "k")
}

// A client whose password has changed meanwhile keeps what is connected, as at the server; what
// needs a new connection is refused in the server's words, and the client has to connect anew.
func TestOldPasswordOpensNothingNew(t *testing.T) {
	t.Parallel()
	s := aclServer(t)
	f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.PrivateMinIdle = 0 })
	c := f.client()
	c.gets("+OK\r\n", "AUTH", "alice", "alice-1")
	c.gets("+OK\r\n", "SET", "alice:k", "v")
	s.Do("ACL", "SETUSER", "alice", "<alice-1", ">alice-2")
	c.gets(bulk("v"), "GET", "alice:k")
	c.gets(wrongPass, "BLPOP", "alice:none", "1")
	c.ends()
}

// Over the limit of lanes clients are served all the same, over private connections, by whatever
// name the further lane would go: another user's, database's, protocol's.
func TestMoreIdentitiesThanLanes(t *testing.T) {
	t.Parallel()
	s := aclServer(t)
	f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.MaxLanes = 2 })
	first := f.client()
	first.gets("+OK\r\n", "SET", "k", "v")
	var crowd []*client
	for i := range 6 {
		c := f.client()
		switch i % 3 {
		case 0:
			c.gets("+OK\r\n", "AUTH", "alice", "alice-1")
			isWholly(t, c, "alice", "alice:k")
		case 1:
			if got := c.ask("HELLO", "3", "AUTH", "bob", "bob-1"); got[0] != '%' {
				t.Fatalf("HELLO: %q", got)
			}
			isWholly(t, c, "bob", "bob:k")
		case 2:
			c.gets("+OK\r\n", "SELECT", fmt.Sprint(i))
			isWholly(t, c, "default", "k")
		}
		crowd = append(crowd, c)
		if lanes := f.Stats().Lanes; lanes > 2 {
			t.Errorf("client %d: %d lanes, want at most 2", i, lanes)
		}
	}
	for i, c := range crowd {
		c.sends(pipeline([]string{"PING"}, []string{"ACL", "WHOAMI"}, []string{"ECHO", "x"}))
		c.replies("+PONG\r\n", bulk([]string{"alice", "bob", "default"}[i%3]), bulk("x"))
	}
	first.gets(bulk("v"), "GET", "k")
}

// Ids are the proxy's own, and mean the same in every command that takes or gives one.
func TestVirtualIDs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	watch := &client{s.Client(), t}
	c, victim := f.client(), f.client()
	id := number(t, victim.ask("CLIENT", "ID"))
	hello := victim.ask("HELLO")
	if !strings.Contains(hello, "$2\r\nid\r\n:"+id+"\r\n") {
		t.Errorf("HELLO tells another id than CLIENT ID: %q", hello)
	}
	victim.gets("+OK\r\n", "CLIENT", "SETNAME", "victim")
	info := victim.ask("CLIENT", "INFO")
	if !strings.Contains(info, "id="+id+" ") || !strings.Contains(info, " name=victim ") {
		t.Errorf("CLIENT INFO: %q", info)
	}
	c.gets(":0\r\n", "CLIENT", "UNBLOCK", id)
	for _, how := range []struct{ option, reply string }{{"TIMEOUT", "*-1\r\n"}, {"ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"}} {
		victim.sends(redistest.Command("BLPOP", "none", "0"))
		blockedClients(t, watch, "1")
		c.gets(":1\r\n", "CLIENT", "UNBLOCK", id, how.option)
		victim.replies(how.reply)
		victim.gets("+PONG\r\n", "PING")
	}
	c.gets(bulk(""), "CLIENT", "LIST", "ID", id)
	victim.gets("+OK\r\n", "WATCH", "k")
	victim.gets("+OK\r\n", "UNWATCH")
	if got := c.ask("PROXY", "CLIENTS"); !strings.Contains(got, "id="+id+" ") || !strings.Contains(got, "name=victim ") {
		t.Errorf("PROXY CLIENTS: %q", got)
	}
	c.gets(":0\r\n", "CLIENT", "KILL", "ID", number(t, c.ask("CLIENT", "ID")))
	c.gets(":1\r\n", "CLIENT", "KILL", "ID", id)
	victim.ends()
	c.gets(":0\r\n", "CLIENT", "KILL", "ID", id)
	c.gets(":0\r\n", "CLIENT", "UNBLOCK", id)
	c.gets("+PONG\r\n", "PING")
}

// number takes an integer out of its reply.
func number(t testing.TB, reply string) string {
	t.Helper()
	n, found := strings.CutPrefix(strings.TrimSpace(reply), ":")
	if !found {
		t.Fatalf("%q is no integer", reply)
	}
	return n
}

// A server's password that only the application knows, as it stands in its URL, serves as
// directly; who has not given it gets nothing, also when it is set while the proxy runs.
func TestPasswordInTheClientsHands(t *testing.T) {
	t.Parallel()
	const noAuth = "-NOAUTH Authentication required.\r\n"
	s := redistest.Start(t, redistest.WithPassword("pw"))
	f := startProxy(t, s.Addr())
	eventually(t, "the server is there", func() bool { return f.Stats().UpstreamUp })
	stranger, c, three := f.client(), f.client(), f.client()
	for _, command := range [][]string{{"GET", "k"}, {"CLIENT", "ID"}, {"PROXY", "CLIENTS"}, {"CLIENT", "KILL", "ID", "4503599627370497"}} {
		stranger.gets(noAuth, command...)
	}
	c.gets("+OK\r\n", "AUTH", "pw")
	isWholly(t, c, "default", "k")
	if got := three.ask("HELLO", "3", "AUTH", "default", "pw"); got[0] != '%' {
		t.Fatalf("HELLO: %q", got)
	}
	isWholly(t, three, "default", "k3")
	// What blocks is called back for whoever has left.
	leaver := f.client()
	leaver.gets("+OK\r\n", "AUTH", "pw")
	leaver.sends(redistest.Command("BLPOP", "none", "0"))
	watch := &client{s.Client(), t}
	blockedClients(t, watch, "1")
	leaver.Close()
	blockedClients(t, watch, "0")
	stranger.gets(noAuth, "GET", "k")
}

// Who may not kill or look at the server does not here.
func TestIDsTakeTheRight(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("ACL", "SETUSER", "low", "on", ">low", "~*", "+get")
	f := startProxy(t, s.Addr())
	victim, low := f.client(), f.client()
	id := number(t, victim.ask("CLIENT", "ID"))
	low.gets("+OK\r\n", "AUTH", "low", "low")
	for _, command := range [][]string{{"KILL", "ID", id}, {"KILL", "ID", id, "SKIPME", "no"}, {"LIST", "ID", id}, {"UNBLOCK", id}} {
		if got := low.ask(append([]string{"CLIENT"}, command...)...); !strings.HasPrefix(got, "-NOPERM ") {
			t.Errorf("CLIENT %q: %q", command, got)
		}
	}
	victim.gets("+PONG\r\n", "PING")
}

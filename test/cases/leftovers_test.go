//go:build cases

package cases

import (
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// unaffected exercises a neighbour by each kind of connection and fails the test when one is not
// as a new one: another database, another protocol, silent, queueing, or telling what nobody asked.
func unaffected(t *testing.T, c *client, after string) {
	t.Helper()
	for _, step := range []struct {
		want string
		args []string
	}{
		{"+OK\r\n", []string{"SET", "hot", after}},
		{bulk(after), []string{"GET", "hot"}},
		{":1\r\n", []string{"HSET", "h" + after, "f", "v"}},
		{"*2\r\n" + bulk("f") + bulk("v"), []string{"HGETALL", "h" + after}},
		{":1\r\n", []string{"RPUSH", "l", "x"}},
		{"*2\r\n" + bulk("l") + bulk("x"), []string{"BLPOP", "l", "1"}},
		{"+OK\r\n", []string{"WATCH", "hot"}},
		{"+OK\r\n", []string{"MULTI"}},
		{"+QUEUED\r\n", []string{"GET", "hot"}},
		{"*1\r\n" + bulk(after), []string{"EXEC"}},
		{":1\r\n", []string{"DEL", "h" + after}},
	} {
		if got := c.ask(step.args...); got != step.want {
			t.Fatalf("after %s: %v: got %.120q, want %q", after, step.args, got, step.want)
		}
	}
	c.silent()
}

// changes is what changes a connection for good, or until it is changed back.
var changes = map[string]string{
	"SUBSCRIBE":       pipeline([]string{"SUBSCRIBE", "c", "d"}),
	"PSUBSCRIBE":      pipeline([]string{"PSUBSCRIBE", "*"}),
	"SSUBSCRIBE":      pipeline([]string{"SSUBSCRIBE", "c"}),
	"REPLY OFF":       pipeline([]string{"CLIENT", "REPLY", "OFF"}, []string{"GET", "hot"}),
	"REPLY SKIP":      pipeline([]string{"CLIENT", "REPLY", "SKIP"}),
	"RESET":           pipeline([]string{"SELECT", "5"}, []string{"RESET"}),
	"MONITOR":         pipeline([]string{"MONITOR"}),
	"TRACKING":        pipeline([]string{"HELLO", "3"}, []string{"CLIENT", "TRACKING", "ON"}, []string{"GET", "hot"}),
	"TRACKING BCAST":  pipeline([]string{"HELLO", "3"}, []string{"CLIENT", "TRACKING", "ON", "BCAST", "NOLOOP"}),
	"HELLO":           pipeline([]string{"HELLO", "3", "SETNAME", "x"}),
	"READONLY":        pipeline([]string{"READONLY"}),
	"NO-EVICT":        pipeline([]string{"CLIENT", "NO-EVICT", "ON"}),
	"SELECT":          pipeline([]string{"SELECT", "5"}),
	"SELECT in MULTI": pipeline([]string{"MULTI"}, []string{"SELECT", "5"}, []string{"EXEC"}),
	"WATCH":           pipeline([]string{"WATCH", "hot"}),
	"DEBUG":           pipeline([]string{"SCRIPT", "DEBUG", "NO"}),
	"REPLCONF":        pipeline([]string{"REPLCONF", "capa", "eof"}),
	"unknown":         pipeline([]string{"CLIENT", "NO-SUCH", "ON"}, []string{"NOSUCHCOMMAND", "x"}),
}

// What one client does to its connection does not reach the next: neither while it is there nor when
// it has left, by whichever end, as often as there are connections in the pool.
func TestCase27OneClientsChangesAreNotAnothers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	neighbour := f.client()
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			neighbour.t = t
			for round := range 4 {
				c := f.client()
				c.sends(redistest.Command("ECHO", "here") + change)
				c.replies(bulk("here"))
				unaffected(t, neighbour, name)
				if round%2 == 0 {
					reset(c.Conn)
				} else {
					_ = c.Close()
				}
				unaffected(t, neighbour, name)
				unaffected(t, f.client(), name)
			}
		})
	}
}

// Blocks in one write whose inner commands change their connection, or end it, are answered as the
// server answers them, and a neighbour of the same lane notices nothing.
func TestCase56BlocksThatChangeTheConnection(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	neighbour := f.client()
	for _, inner := range [][]string{
		{"SELECT", "5"}, {"HELLO", "3"}, {"SUBSCRIBE", "c"}, {"CLIENT", "TRACKING", "ON"}, {"CLIENT", "NO-EVICT", "ON"},
		{"CLIENT", "REPLY", "OFF"}, {"RESET"}, {"QUIT"}, {"WATCH", "k"}, {"MULTI"}, {"MONITOR"}, {"NOSUCHCOMMAND"},
		{"XREAD", "BLOCK", "0", "STREAMS", "none", "$"}, {"BLPOP", "none", "0"}, {"WAIT", "1", "0"}, {"AUTH", "x", "y"},
	} {
		name := strings.Join(inner, " ")
		t.Run(name, func(t *testing.T) {
			neighbour.t = t
			for range 3 {
				c, direct := f.client(), connect(t, s.Addr())
				for _, each := range []*client{direct, c} {
					each.sends(pipeline([]string{"ECHO", "here"}, []string{"MULTI"}, []string{"SET", "inside", "1"}, inner, []string{"EXEC"},
						[]string{"GET", "inside"}, []string{"QUIT"}))
				}
				got, want := withoutID(untilEnd(c)), withoutID(untilEnd(direct))
				if got != want {
					t.Fatalf("got %q\nwant %q", got, want)
				}
				unaffected(t, neighbour, name)
			}
		})
	}
}

// A user who may not MULTI runs the inner commands one by one, and a blocking one blocks: on a
// lane it would hold up everybody of that user.
func TestCase56BlockOfAUserWithoutMulti(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("ACL", "SETUSER", "meek", "on", ">secret", "~*", "&*", "+@all", "-multi", "-exec")
	f := startProxy(t, s.Addr())
	watch := &client{s.Client(), t}
	c, neighbour := f.client(), f.client()
	for _, each := range []*client{c, neighbour} {
		each.gets("+OK\r\n", "AUTH", "meek", "secret")
	}
	c.sends(pipeline([]string{"MULTI"}, []string{"XREAD", "BLOCK", "0", "STREAMS", "s", "$"}, []string{"EXEC"}))
	if got := c.reply(); !strings.HasPrefix(got, "-NOPERM ") {
		t.Fatalf("MULTI: %q", got)
	}
	blockedClients(t, watch, "1")
	for range 50 {
		neighbour.gets("+OK\r\n", "SET", "k", "v")
		neighbour.gets(bulk("v"), "GET", "k")
	}
	s.Do("XADD", "s", "1-1", "f", "v")
	if got := c.reply(); !strings.Contains(got, bulk("1-1")) {
		t.Errorf("XREAD: %q", got)
	}
	direct := connect(t, s.Addr())
	direct.gets("+OK\r\n", "AUTH", "meek", "secret")
	direct.ask("MULTI")
	c.replies(direct.ask("EXEC"))
	c.silent()
}

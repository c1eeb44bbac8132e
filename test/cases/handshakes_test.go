//go:build cases

package cases

import (
	"fmt"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
	"streamproxy/proxy"
)

// asURL makes a proxy greet its upstream with what a URL says.
func asURL(t testing.TB, url string) func(*proxy.Config) {
	t.Helper()
	target, err := upstream.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *proxy.Config) { c.Upstream = target }
}

// HELLO with all its options in one go, and the ways in which a server refuses it: each leaves the
// connection as it was.
func TestCase29Hello(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithPassword("p"))
	f := startProxy(t, s.Addr(), asURL(t, s.URL()))
	f.everyListener(t, func(t *testing.T, addr string) {
		c, direct := connect(t, addr), connect(t, s.Addr())
		for _, args := range [][]string{
			{"HELLO", "3", "AUTH", "default", "wrong", "SETNAME", "n"},
			{"HELLO", "3", "AUTH", "default", "p", "SETNAME", "n"},
			{"HELLO"},
			{"HELLO", "4"},
			{"HELLO", "three"},
			{"HELLO", "2", "SETNAME"},
			{"HELLO", "2", "SETNAME", "with space"},
			{"HELLO", "3", "NOSUCH"},
			{"CLIENT", "GETNAME"},
			{"HGETALL", "none"},
			{"HELLO", "2"},
			{"HGETALL", "none"},
			{"CLIENT", "GETNAME"},
		} {
			got, want := c.ask(args...), direct.ask(args...)
			if args[0] == "HELLO" {
				got, want = withoutID(got), withoutID(want)
			}
			if got != want {
				t.Errorf("%v:\n got %q\nwant %q", args, got, want)
			}
		}
		c.silent()
	})
}

// A server without HELLO says that it is unknown, in the words that client libraries look for to
// fall back to the old protocol. They go on with the same connection.
func TestCase29ServerWithoutHello(t *testing.T) {
	t.Parallel()
	u := startFake(t)
	f := startProxy(t, u.addr)
	c := f.client()
	for _, args := range [][]string{{"HELLO", "3"}, {"HELLO", "3", "SETNAME", "n"}, {"HELLO"}} {
		if got := c.ask(args...); !strings.HasPrefix(got, "-ERR unknown command") {
			t.Errorf("%v: %q", args, got)
		}
	}
	c.sends(redistest.Command("GET", "a"))
	if err := u.next("GET", "a").answer(bulk("v")); err != nil {
		t.Fatal(err)
	}
	c.replies(bulk("v"))
}

// What drivers say when they connect. A refusal breaks the pools of some, so each is answered as
// the server at hand answers it: 7.0 knows no SETINFO yet.
func TestCase30FirstWords(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	seen := map[string]bool{}
	for round := range 3 {
		c, direct := f.client(), connect(t, s.Addr())
		for _, args := range [][]string{
			{"CLIENT", "SETINFO", "LIB-NAME", "x"}, {"client", "setinfo", "lib-ver", "1.2"}, {"CLIENT", "SETINFO", "LIB-NAME", "a b"},
			{"CLIENT", "SETINFO", "NOSUCH", "x"}, {"CLIENT", "GETNAME"}, {"CLIENT", "SETNAME", "driver"}, {"CLIENT", "GETNAME"},
			{"CLIENT", "SETNAME", "with space"}, {"CLIENT", "SETNAME"}, {"CLIENT", "SETNAME", ""}, {"CLIENT", "GETNAME"},
		} {
			if got, want := c.ask(args...), direct.ask(args...); got != want {
				t.Errorf("%v: got %q, want %q", args, got, want)
			}
		}
		id := c.ask("CLIENT", "ID")
		var n int64
		if _, err := fmt.Sscanf(id, ":%d\r\n", &n); err != nil || n < 1<<52 || n > 1<<53 || seen[id] {
			t.Errorf("round %d: CLIENT ID is %q, want one that nobody else has and JavaScript can hold", round, id)
		}
		seen[id] = true
	}
}

// Scripts are loaded, run by their hash and flushed in the middle of pipelines, also those of
// others: every EVALSHA finds its script or says that there is none, as at the server.
func TestCase31ScriptsInPipelines(t *testing.T) {
	t.Parallel()
	const script, sha = "return ARGV[1]", "098e0f0d1448c0a81dafe820f66d460eb09263da"
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	loaded := s.Do("SCRIPT", "LOAD", script)
	s.Do("SCRIPT", "FLUSH")
	if loaded != bulk(sha) {
		t.Fatalf("the script's hash is %q", loaded)
	}
	run := []string{"EVALSHA", sha, "0", "here"}
	missing := s.Do(run...)
	if !strings.HasPrefix(missing, "-NOSCRIPT ") {
		t.Fatalf("without the script: %q", missing)
	}
	a, b := f.client(), f.client()
	for range 20 {
		a.sends(pipeline(run, []string{"SCRIPT", "LOAD", script}, run, []string{"SCRIPT", "FLUSH"}, run,
			[]string{"SCRIPT", "EXISTS", sha}, []string{"EVAL", script, "0", "again"}, run, []string{"SCRIPT", "FLUSH", "SYNC"}))
		a.replies(missing, bulk(sha), bulk("here"), "+OK\r\n", missing, "*1\r\n:0\r\n", bulk("again"), bulk("here"), "+OK\r\n")
		b.gets(missing, run...)
	}
}

// An error about slots is an error like any other: the connection that it came on serves the next
// command, shared or not, and the next client.
func TestCase25CrossSlot(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--cluster-enabled", "yes"))
	s.Do("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	eventually(t, "the cluster of one is up", func() bool { return strings.Contains(s.Do("CLUSTER", "INFO"), "cluster_state:ok") })
	f := startProxy(t, s.Addr())
	const cross = "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
	for range 5 {
		c := f.client()
		c.gets(cross, "BLPOP", "a", "b", "0")
		c.gets(cross, "MGET", "a", "b")
		c.gets("*2\r\n$-1\r\n$-1\r\n", "MGET", "{x}a", "{x}b")
		c.gets("*-1\r\n", "BLPOP", "{x}a", "{x}b", "0.01")
		c.sends(pipeline([]string{"BLPOP", "a", "b", "0"}, []string{"MGET", "a", "b"}))
		reset(c.Conn)
		f.client().gets("$-1\r\n", "GET", "a")
	}
	if busy := f.Stats().PrivateBusy; busy != 0 {
		eventually(t, "no private connection is left in use", func() bool { return f.Stats().PrivateBusy == 0 })
	}
}

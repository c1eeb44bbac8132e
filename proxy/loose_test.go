package proxy

import (
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

func TestLooseServers(t *testing.T) {
	for server, want := range map[string]bool{
		"redis 6.2.14": false, "redis 7.0.15": false, "redis 7.2.4": true, "redis 8.2.3": true, "redis 10.0": true,
		"valkey 9.1.2": false, "valkey 8.0.1": true, " ": true, "redis ": true, "dragonfly 1.2": true,
	} {
		name, version, _ := strings.Cut(server, " ")
		if got := loose(name, version); got != want {
			t.Errorf("%s: %v", server, got)
		}
	}
}

// Scripts travel apart where their errors may hold line ends, unless the operator vouches for them.
func TestLooseScriptsTravelApart(t *testing.T) {
	table := DefaultTable().WithLooseScripts([]string{"FCALL"})
	for line, want := range map[string]bool{"EVAL x 0": true, "evalsha x 0": true, "EVAL_RO x 0": true, "fcall_ro f 0": true, "fcall f 0": false, "get k": false,
		"EVALSHA C3F8721CBB97F72BC19E972846BD7AAF91901658 1 lock token": false, "evalsha c3f8721cbb97f72bc19e972846bd7aaf91901658 2 lock token x": true} {
		r := table.Classify(words(line))
		if r.Loose != want || want != (r.Class == ClassUnknown) {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if !table.Classify(words("EVAL x 0")).Write || table.Classify(words("EVAL_RO x 0")).Write {
		t.Error("what may write is not known any more")
	}
}

// An error with a line end in it is more than one frame. Its rest reaches nobody but who asked for it,
// however closely others' commands follow, and in whatever pieces it comes.
func TestLooseReplyReachesNobodyElse(t *testing.T) {
	f := startFake(t)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] == "EVAL" {
			return "-ERR x\r\n$6\r\nFORGED\r\n+y script\r\n", true
		}
		return "", false
	})
	p := startProxy(t, f, nil)
	eval := redistest.Command("EVAL", "error(ARGV[1])", "0", "x")
	for range 50 {
		c, other := p.client(), p.client()
		if err := c.Send(redistest.Command("GET", "a") + eval); err != nil {
			t.Fatal(err)
		}
		expectReply(t, c, bulkReply("a"))
		expectReply(t, c, "-ERR x\r\n")
		expect(t, other, bulkReply("mine"), "ECHO", "mine")
		expect(t, other, bulkReply("k"), "SET", "k", strings.Repeat("x", largeCommand)) // over a private connection
		expect(t, other, bulkReply("mine"), "ECHO", "mine")
	}
}

// A script that succeeds leaves its connection to others.
func TestLooseConnectionIsUsedAgain(t *testing.T) {
	f := startFake(t)
	c := startProxy(t, f, nil).client()
	for range 30 {
		expect(t, c, bulkReply("return 1"), "EVAL", "return 1", "0")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids > 20 { // the lane, the control plane's, two spares and some under way
		t.Errorf("%d connections for 30 scripts", f.ids)
	}
}

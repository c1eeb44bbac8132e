package proxy

import (
	"fmt"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// During an outage, what changes the client's connection ends it instead of being answered with an
// error that a library would take for a refusal. What came before is answered, what follows is not.
func TestSettingUpWithoutUpstream(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	expect(t, p.client(), bulkReply("a"), "GET", "a")
	f.leave(t, p)
	name := redistest.Command("CLIENT", "GETNAME")
	waiting := map[string]*redistest.Client{} // at the same time: each waits for the upstream
	for _, command := range []string{
		"SELECT 4", "HELLO", "HELLO 2", "HELLO 3", "HELLO 3 AUTH alice secret", "AUTH alice secret", "SUBSCRIBE c", "PSUBSCRIBE c*",
		"SSUBSCRIBE c", "CLIENT TRACKING ON", "CLIENT REPLY OFF", "READONLY", "MONITOR", "PSYNC ? -1",
		"SUBSCRIBE " + strings.Repeat("c", largeCommand), // of which the end is still to come when its fate is known
	} {
		c := p.client()
		if err := c.Send(name + redistest.Command(strings.Fields(command)...) + name); err != nil {
			t.Fatal(err)
		}
		waiting[command] = c
	}
	behind, open := p.client(), p.client()
	if err := behind.Send(redistest.Command("GET", "a") + redistest.Command("SUBSCRIBE", "c") + name); err != nil {
		t.Fatal(err)
	}
	others := []string{"BLPOP l 0", "WATCH k", "GET a"}
	for command, c := range waiting {
		t.Run(fmt.Sprintf("%.30s", command), func(t *testing.T) {
			expectReply(t, c, "$-1\r\n")
			expectEnd(t, c)
		})
	}
	t.Run("behind a failed command", func(t *testing.T) {
		expectReply(t, behind, string(replyNotSent))
		expectEnd(t, behind)
	})
	t.Run("anything else", func(t *testing.T) {
		for _, command := range others {
			if err := open.SendCommand(strings.Fields(command)...); err != nil {
				t.Fatal(err)
			}
		}
		for range others {
			expectReply(t, open, string(replyNotSent))
		}
		expect(t, open, "+OK\r\n", "CLIENT", "SETNAME", "x")
	})
}

// A HELLO whose connection is lost under way is not answered either.
func TestHelloLostUnderWay(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.PrivateMinIdle = 0 })
	for _, first := range []string{"HELLO 3", "HELLO 2"} {
		c := p.client()
		if got, err := c.Do(strings.Fields(first)...); err != nil || strings.HasPrefix(got, "-") {
			t.Fatalf("%q, %v", got, err)
		}
		expect(t, c, bulkReply("a"), "GET", "a")
		lost := false
		f.script(func(c *fakeConn, args []string) (string, bool) {
			if args[0] != "HELLO" || c.kind == "" || lost { // the greeting of a connection has no kind yet
				return "", false
			}
			lost = true
			c.Close()
			return "", true
		})
		if err := c.Send(redistest.Command(strings.Fields(first)...) + redistest.Command("CLIENT", "GETNAME")); err != nil {
			t.Fatal(err)
		}
		expectEnd(t, c)
		f.script(nil)
	}
}

// Each command of a run is answered, also where there is neither a lane nor a private connection.
func TestRunWithoutConnection(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.MaxLanes, c.PrivateMinIdle = 1, 0 }) // no dial of a spare's is under way
	c, other := p.client(), p.client()
	expect(t, other, bulkReply("a"), "GET", "a")
	expect(t, c, "+OK\r\n", "SELECT", "3")
	expect(t, c, bulkReply("a"), "GET", "a")
	f.front.Close()
	until(t, "the spares to go", func() bool {
		f.cut("private")
		return p.Stats().PrivateIdle == 0
	})
	if err := c.Send(strings.Repeat(redistest.Command("GET", "a"), 3)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		expectReply(t, c, string(replyNotSent))
	}
	expect(t, c, "+OK\r\n", "CLIENT", "SETNAME", "x") // nothing is missing, nothing too many
}

// expectReply reads one reply and compares it.
func expectReply(t *testing.T, c *redistest.Client, want string) {
	t.Helper()
	if got, err := c.ReadReply(); err != nil || got != want {
		t.Errorf("got %.200q, %v; want %.200q", got, err, want)
	}
}

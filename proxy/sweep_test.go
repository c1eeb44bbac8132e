package proxy

import (
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// A silent server is found within the timeout, everything in flight is unknown, and
// the next connection serves again.
func TestSilentUpstream(t *testing.T) {
	f := startFake(t)
	const timeout = 200 * time.Millisecond
	p := startProxy(t, f, func(c *Config) { c.UpstreamTimeout = timeout })
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		return "", args[0] == "GET" && (args[1] == "silent" || args[1] == "behind")
	})
	c := p.client()
	start := time.Now()
	if err := c.Send(redistest.Command("GET", "silent") + redistest.Command("GET", "behind")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := c.ReadReply(); err != nil || got != string(replyUnknown) {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if took := time.Since(start); took < timeout {
		t.Errorf("given up after %v", took)
	}
	expect(t, c, bulkReply("a"), "GET", "a")
}

// Over the memory limit the client that owes most is closed, with an error where that
// is possible, and the others stay.
func TestShed(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.MemoryLimit = 4 << 20 })
	type owing struct {
		s    *session
		rest func() string
	}
	var clients []owing
	for _, owed := range []int{1 << 20, 6 << 20, 2 << 20} {
		s, client := bare(t, p)
		if !p.sessions.add(s, 100) {
			t.Fatal("no room")
		}
		t.Cleanup(func() { p.sessions.remove(s) })
		g := book(s, &segment{}, 1)
		g.Reply([]byte(bulkReply(strings.Repeat("x", owed))), 1, 0)
		g.Flush()
		clients = append(clients, owing{s, func() string { return rest(t, client) }})
	}
	until(t, "the limit", func() bool { return p.buffered.Load() < 4<<20 })
	for i, want := range []bool{false, true, false} {
		s := clients[i].s
		s.mu.Lock()
		if s.closed != want {
			t.Errorf("client %d closed: %v", i, s.closed)
		}
		s.mu.Unlock()
	}
	if !p.crowded() && p.buffered.Load() > 4<<20-(4<<20)/8 {
		t.Error("clients that owe reading are read from close to the limit")
	}
}

// A client that can still be told is told.
func TestRefuseMemory(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	s.refuseMemory()
	if got := rest(t, client); got != "-"+textMemory+"\r\n" {
		t.Errorf("got %q", got)
	}
}

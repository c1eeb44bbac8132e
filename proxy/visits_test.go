package proxy

import (
	"io"
	"testing"

	"streamproxy/internal/redistest"
)

// Of a crowd that comes to a database where nobody is yet, one has a connection dialled, and all hear
// of it; who leaves meanwhile does not end that for the others, and the last one does.
func TestCrowdVisitsTogether(t *testing.T) {
	f := startFake(t)
	held := func(c *fakeConn, args []string) bool { return args[0] == "PING" && c.db == "3" }
	f.script(func(c *fakeConn, args []string) (string, bool) { return "", held(c, args) })
	p := startProxy(t, f, withoutSpares)
	expect(t, p.client(), bulkReply("a"), "GET", "a")
	key := p.defaultKey()
	key.DB = 3
	h := p.hubOf(key)
	defer p.leaveHub(h)
	waiting := func(n int) func() bool {
		return func() bool {
			h.visits.mu.Lock()
			defer h.visits.mu.Unlock()
			return n == 0 && h.visits.now == nil || h.visits.now != nil && h.visits.now.waiting == n
		}
	}
	crowd := func(n int) (clients []*redistest.Client) {
		for range n {
			c := p.client()
			if err := c.SendCommand("SELECT", "3"); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, c)
		}
		until(t, "the crowd to wait", waiting(n))
		return clients
	}
	few := crowd(2)
	f.wait(t, "the visit", func() bool { return f.countLocked("PING") == 1 })
	for _, c := range few {
		resets(c)
	}
	until(t, "the visit to end with who wanted it", waiting(0))
	clients := crowd(50)
	resets(clients[0])
	until(t, "one to leave", waiting(49))
	f.wait(t, "the visit", func() bool { return f.countLocked("PING") == 2 })
	f.script(nil)
	f.mu.Lock()
	for _, c := range f.conns {
		if c.db == "3" {
			io.WriteString(c, "+PONG\r\n")
		}
	}
	f.mu.Unlock()
	for _, c := range clients[1:] {
		expectReply(t, c, "+OK\r\n")
	}
	if n := f.count("PING"); n != 2 {
		t.Errorf("%d visits", n)
	}
}

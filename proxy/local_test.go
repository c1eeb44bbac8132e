package proxy

import (
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"streamproxy/internal/redistest"
	"streamproxy/reclaim"
)

func TestProxyConfig(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.Effective = func() string { return "--max-lanes=64\n" } })
	c := p.client()
	expect(t, c, bulkReply("--max-lanes=64\n"), "PROXY", "CONFIG")
	expect(t, c, bulkReply("--max-lanes=64\n"), "proxy", "config")
	without := startProxy(t, f, nil)
	const unknown = "-ERR streamproxy: unknown PROXY subcommand; try PROXY STATS, STREAMS, CLIENTS or CONFIG\r\n"
	expect(t, without.client(), unknown, "PROXY", "CONFIG")
	for _, args := range [][]string{{"PROXY"}, {"PROXY", "FISH"}, {"PROXY", "STATS", "x"}} {
		expect(t, c, unknown, args...)
	}
}

// What PROXY STATS tells is told of in the pages.
func TestStatsAreDescribed(t *testing.T) {
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, startFake(t), nil)
	fields := strings.Split(strings.TrimSpace(p.statsText()), "\r\n")
	if len(fields) < 10 {
		t.Fatalf("only %q", fields)
	}
	for _, line := range fields[1:] {
		if name, _, _ := strings.Cut(line, ":"); !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/operations.md does not tell what %s is", name)
		}
	}
}

// Who may not ask the server for INFO is not told by the proxy either, whatever the
// form of the question; an unknown subcommand tells nobody anything.
func TestProxyPagesNeedInfo(t *testing.T) {
	const denied = "-NOPERM this user has no permissions to run the 'info' command\r\n"
	f := startFake(t)
	f.script(func(_ *fakeConn, args []string) (string, bool) { return denied, args[0] == "INFO" })
	p := startProxy(t, f, func(c *Config) { c.Effective = func() string { return "secret" } })
	c := p.client()
	until(t, "the server", p.health.up.Load)
	for _, args := range [][]string{{"PROXY", "STATS"}, {"PROXY", "CLIENTS"}, {"PROXY", "STREAMS"}, {"PROXY", "CONFIG"}, {"INFO", "streamproxy"}} {
		expect(t, c, denied, args...)
	}
	expect(t, c, bulkReply("k"), "GET", "k")
}

// While the server is away the upstream URL's user still sees the proxy's state.
func TestProxyPagesWithoutAServer(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	c := p.client()
	until(t, "the server", p.health.up.Load)
	f.front.Close()
	p.health.up.Store(false)
	got, err := c.Do("PROXY", "STATS")
	if err != nil || !strings.Contains(got, "\r\nupstream_up:0\r\n") {
		t.Errorf("got %q, %v", got, err)
	}
}

// Pages that nobody takes stop at the memory limit, however many are asked for at once, and
// are not made for a client that is gone.
func TestPagesStopAtTheMemoryLimit(t *testing.T) {
	const limit, page, asked = 1 << 20, 50 << 10, 2000
	f := startFake(t)
	var made, most atomic.Int64
	var p *testProxy
	p = startProxy(t, f, func(c *Config) {
		c.MemoryLimit = limit
		c.Effective = func() string {
			made.Add(1)
			for _, s := range p.sessions.all() {
				s.mu.Lock()
				most.Store(max(most.Load(), s.unsent()))
				s.mu.Unlock()
			}
			return strings.Repeat("x", page)
		}
	})
	c := p.client()
	s := p.sessionOf(t, c)
	c.Send(strings.Repeat(redistest.Command("PROXY", "CONFIG"), asked))
	until(t, "the pages to stop", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return made.Load() == asked || s.waiters > 0 && s.unsent() > 0
	})
	if most.Load() > limit {
		t.Errorf("%d bytes were kept", most.Load())
	}
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Close()
	until(t, "the session to end", func() bool { return p.sessions.len() == 0 })
	if n := made.Load(); n == asked {
		t.Errorf("all %d pages were made for a client that is gone", n)
	}
}

// Answers that wait for an earlier reply count as memory, and stop there too.
func TestAnswersBehindAReplyStopAtTheMemoryLimit(t *testing.T) {
	const limit, asked = 8 << 20, 1000
	name := strings.Repeat("n", 30<<10)
	f := startFake(t)
	slow := make(chan *fakeConn, 1)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] == "GET" {
			slow <- c
		}
		return "", args[0] == "GET"
	})
	p := startProxy(t, f, func(c *Config) { c.MemoryLimit = limit })
	c := p.client()
	s := p.sessionOf(t, c)
	expect(t, c, "+OK\r\n", "CLIENT", "SETNAME", name)
	c.Send(redistest.Command("GET", "slow") + strings.Repeat(redistest.Command("CLIENT", "GETNAME"), asked))
	conn := <-slow
	var kept int64
	until(t, "the answers to stop", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		kept = s.kept()
		return kept > asked*int64(len(name)) || s.waiters > 0 && kept > 0
	})
	if kept > limit {
		t.Errorf("%d bytes were kept", kept)
	}
	f.mu.Lock()
	io.WriteString(conn, bulkReply("slow"))
	f.mu.Unlock()
	for i := range asked + 1 {
		want := bulkReply(name)
		if i == 0 {
			want = bulkReply("slow")
		}
		if got, err := c.ReadReply(); err != nil || got != want {
			t.Fatalf("reply %d: %d bytes, %v", i, len(got), err)
		}
	}
	until(t, "the count to come out right", func() bool { return p.buffered.Load() == 0 })
}

// A long list of clients ends with how many more there are.
func TestClientsAreListedToABound(t *testing.T) {
	const clients = maxClientLines + 7
	p := startProxy(t, startFake(t), func(c *Config) { c.MaxClients = clients })
	for range clients {
		nc, other := net.Pipe()
		t.Cleanup(func() { other.Close() })
		if s := newSession(p.Proxy, nc); !p.sessions.add(s, clients) {
			t.Fatal("refused")
		}
	}
	text := p.clientsText()
	if n := strings.Count(text, "\r\n"); n != maxClientLines+1 || !strings.HasSuffix(text, "\r\n# and 7 more\r\n") {
		t.Errorf("%d lines, the last %q", n, text[max(0, len(text)-40):])
	}
}

func TestReclaimOffIsSaid(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.Reclaim.Mode = reclaim.Off })
	expect(t, p.client(), bulkReply("# reclaim is off\r\n"), "PROXY", "STREAMS")
	on := startProxy(t, f, func(c *Config) { c.Reclaim.Mode = reclaim.On })
	expect(t, on.client(), bulkReply("# reclaim on: 0 streams, 0 hot, 0 cold, 0 unknown; 0 entries held\r\n"), "PROXY", "STREAMS")
}

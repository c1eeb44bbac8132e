package proxy

import (
	"strings"
	"testing"

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

func TestReclaimOffIsSaid(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.Reclaim.Mode = reclaim.Off })
	expect(t, p.client(), bulkReply("# reclaim is off\r\n"), "PROXY", "STREAMS")
	on := startProxy(t, f, func(c *Config) { c.Reclaim.Mode = reclaim.On })
	expect(t, on.client(), bulkReply("# reclaim on: 0 streams, 0 hot, 0 cold, 0 unknown; 0 entries held\r\n"), "PROXY", "STREAMS")
}

package proxy

import (
	"testing"
)

// Connections that are there prove nothing about a right that may have been taken away: the server is
// asked before a client moves to them, and then not again for a while.
func TestSelectAsksTheServer(t *testing.T) {
	f := startFake(t)
	const refusal = "-NOPERM no SELECT\r\n"
	refuse := false
	f.script(func(_ *fakeConn, args []string) (string, bool) { return refusal, refuse && args[0] == "SELECT" })
	p := startProxy(t, f, nil)
	c, d := p.client(), p.client()
	for _, each := range []string{"3", "0", "3"} {
		expect(t, c, "+OK\r\n", "SELECT", each)
	}
	expect(t, c, bulkReply("k"), "GET", "k")
	there := p.sessionOf(t, c).home.Load()
	f.mu.Lock()
	refuse = true
	f.mu.Unlock()
	expect(t, d, "+OK\r\n", "SELECT", "3") // the server has agreed a moment ago
	expect(t, d, "+OK\r\n", "SELECT", "0")
	there.selects.agreed.Store(0)
	expect(t, d, refusal, "SELECT", "3")
	if p.sessionOf(t, d).home.Load() == there {
		t.Error("it is there all the same")
	}
	f.mu.Lock()
	refuse = false
	f.mu.Unlock()
	expect(t, d, "+OK\r\n", "SELECT", "3")
	if !there.selects.recent() {
		t.Error("that is not remembered")
	}
}

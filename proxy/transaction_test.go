package proxy

import (
	"slices"
	"testing"
)

// A transaction that the server refuses to begin it may refuse to end as well: the client goes on, and
// the connection, which holds nothing, is no longer the client's.
func TestRefusedTransactionNeverBegan(t *testing.T) {
	const refusal = "-NOPERM no\r\n"
	f := startFake(t)
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		return refusal, slices.Contains([]string{"MULTI", "WATCH", "EXEC", "DISCARD", "UNWATCH"}, args[0])
	})
	p := startProxy(t, f, nil)
	c := p.client()
	for _, talk := range [][2]string{{"WATCH", "UNWATCH"}, {"MULTI", "DISCARD"}, {"MULTI", "EXEC"}} {
		begin := []string{talk[0]}
		if talk[0] == "WATCH" {
			begin = append(begin, "k")
		}
		expect(t, c, refusal, begin...)
		expect(t, c, bulkReply("a"), "GET", "a")
		if n := p.Stats().PrivateBusy; n != 1 {
			t.Fatalf("%v: %d private connections in use", talk, n)
		}
		expect(t, c, refusal, talk[1])
		expect(t, c, bulkReply("a"), "GET", "a")
		if n := p.Stats().PrivateBusy; n != 0 {
			t.Errorf("%v: %d private connections in use after it", talk, n)
		}
	}
}

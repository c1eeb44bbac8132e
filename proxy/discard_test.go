package proxy

import (
	"slices"
	"testing"
)

// A transaction that its client leaves open gives back its place whatever becomes of it, and its
// connection only if the server has forgotten it.
func TestOpenTransactionsAreGivenUp(t *testing.T) {
	for answer, kept := range map[string]bool{"+OK\r\n": true, "-NOPERM no\r\n": false, "": false} {
		f := startFake(t)
		f.script(func(c *fakeConn, args []string) (string, bool) {
			if args[0] == "DISCARD" || args[0] == "UNWATCH" {
				if answer == "" {
					c.Close()
				}
				return answer, true
			}
			return "+OK\r\n", slices.Contains([]string{"MULTI", "WATCH"}, args[0])
		})
		p := startProxy(t, f, func(cfg *Config) { cfg.PrivateMinIdle = 0 })
		for _, begin := range [][]string{{"MULTI"}, {"WATCH", "k"}} {
			c := p.client()
			expect(t, c, "+OK\r\n", begin...)
			if len(p.txSlots) != 1 {
				t.Fatalf("%d places are taken", len(p.txSlots))
			}
			resets(c)
			until(t, "the place to be given back", func() bool { return len(p.txSlots) == 0 })
			until(t, "the connection to be settled", func() bool {
				st := p.Stats()
				return st.PrivateBusy == 0 && (st.PrivateIdle > 0) == kept
			})
		}
	}
}

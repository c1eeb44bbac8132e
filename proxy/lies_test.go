package proxy

import (
	"slices"
	"strings"
	"testing"
)

// lies are what a server may send in place of, or after, a good answer.
var lies = []struct{ name, instead, after string }{
	{"one too many", "", "+OK\r\n"},
	{"a push", "", ">3\r\n+subscribe\r\n+a\r\n:1\r\n"},
	{"negative length", "$-5\r\n", ""},
	{"an impossible count", "*9223372036854775807\r\n", ""},
	{"an impossible length", "$9223372036854775807\r\n", ""},
	{"an impossible map", "%4611686018427387905\r\n", ""},
	{"a large count", "*1000000000\r\n", ""},
	{"a large length", "$2000000000\r\n", ""},
	{"a negative verbatim string", "=-3\r\n", ""},
	{"no number", "", ",x\r\n"},
	{"two in a line", "+a\n+b\r\n", ""},
	{"an endless line", "+" + strings.Repeat("a", 9<<20), ""},
	{"endlessly deep", strings.Repeat("*1\r\n", 9<<18), ""},
}

// A server that lies on the control connection while it serves clients well ends neither the
// process nor their connections. The proxy counts it as down until it answers well.
func TestLiesOnTheControlConnection(t *testing.T) {
	for _, lie := range lies {
		t.Run(lie.name, func(t *testing.T) {
			f := startFake(t)
			lying := false // f.mu guards it
			controls := map[*fakeConn]bool{}
			f.script(func(c *fakeConn, args []string) (string, bool) {
				if args[0] == "HELLO" && slices.Contains(args, "SETNAME") {
					controls[c] = true
				}
				if !controls[c] || !lying {
					return "", false
				}
				if lie.instead != "" {
					return lie.instead + lie.after, true
				}
				return f.standard(c, args) + lie.after, true
			})
			lies := func(on bool) {
				f.mu.Lock()
				lying = on
				f.mu.Unlock()
			}
			p := startProxy(t, f, nil)
			up := func(want bool) func() bool {
				return func() bool {
					p.checkNow()
					return p.Stats().UpstreamUp == want
				}
			}
			until(t, "the server to be up", up(true))
			c := p.client()
			expect(t, c, bulkReply("a"), "GET", "a")
			lies(true)
			until(t, "the lie to be noticed", up(false))
			expect(t, c, bulkReply("a"), "GET", "a")
			lies(false)
			until(t, "the server to be up again", up(true))
			expect(t, c, bulkReply("a"), "GET", "a")
		})
	}
}

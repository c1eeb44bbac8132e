package proxy

import (
	"strings"
	"testing"

	"github.com/tidwall/redcon"
)

var noRoom = string(redcon.AppendError(nil, textNoRoom))

// Long names of clients take no more than their share of the memory, short ones are kept whatever
// the others have taken. Who is refused one has the name that it had, and is served on.
func TestNamesTakeAShareOfTheMemory(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.MemoryLimit = 1 << 20 })
	first, second := p.client(), p.client()
	long, more := strings.Repeat("a", 20<<10), strings.Repeat("b", 20<<10)
	expect(t, first, "+OK\r\n", "CLIENT", "SETNAME", long)
	expect(t, second, "+OK\r\n", "CLIENT", "SETNAME", "short")
	if held := p.inBuffers(); held < int64(len(long)) {
		t.Errorf("%d bytes count as held, want the name's at least", held)
	}
	expect(t, second, noRoom, "CLIENT", "SETNAME", more)
	expect(t, second, noRoom, "HELLO", "3", "SETNAME", more)
	expect(t, second, "$5\r\nshort\r\n", "CLIENT", "GETNAME")
	expect(t, second, "+OK\r\n", "CLIENT", "SETNAME", strings.Repeat("c", shortName))
	expect(t, second, "+PONG\r\n", "PING")

	expect(t, first, "+OK\r\n", "CLIENT", "SETNAME", "")
	expect(t, second, "+OK\r\n", "CLIENT", "SETNAME", more)
	expect(t, second, "+RESET\r\n", "RESET")
	expect(t, first, "+OK\r\n", "CLIENT", "SETNAME", long)
	first.Close()
	second.Close()
	until(t, "the names to go with their clients", func() bool { return p.inBuffers() == 0 })
}

// The same holds of the credentials that clients have proven, which any number of clients have if
// the server asks for no password.
func TestCredentialsTakeAShareOfTheMemory(t *testing.T) {
	f := startFake(t)
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		if args[0] != "AUTH" {
			return "", false
		}
		return "+OK\r\n", true
	})
	p := startProxy(t, f, func(c *Config) { c.MemoryLimit = 1 << 20 })
	first, second := p.client(), p.client()
	long, more := strings.Repeat("a", 20<<10), strings.Repeat("b", 20<<10)
	expect(t, first, "+OK\r\n", "AUTH", "any", long)
	if held := p.inBuffers(); held < int64(len(long)) {
		t.Errorf("%d bytes count as held, want the password's at least", held)
	}
	expect(t, second, noRoom, "AUTH", "any", more)
	expect(t, second, noRoom, "HELLO", "2", "AUTH", "any", more)
	expect(t, second, noRoom, "AUTH", strings.Repeat("u", maxUserName+1), "short")
	expect(t, second, "+OK\r\n", "AUTH", "any", long) // kept once for both
	expect(t, second, "+OK\r\n", "AUTH", "any", strings.Repeat("c", shortLogin-len("any")))

	first.Close()
	until(t, "the password to go with its client", func() bool { return p.logins.bytes.Load() <= shortLogin })
	expect(t, second, "+OK\r\n", "AUTH", "any", more)
	second.Close()
	until(t, "all to go with their clients", func() bool { return p.inBuffers() == 0 })
}

//go:build cases

package cases

import (
	"errors"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// denied is a list for --deny, each of which an ACL can forbid as well.
var denied = []string{"flushall", "config|set", "mset", "object|freq", "xreadgroup", "xautoclaim", "ssubscribe"}

// dialogs are what a client says to a server whose ACL forbids these commands, and to a proxy that
// denies them. A word of x's is made long.
var dialogs = [][]string{
	{"SET k v", "FlushAll", "FLUSHALL ASYNC", "GET k"},
	{"CONFIG SET maxmemory 1", "CONFIG GET maxmemory", "OBJECT ENCODING k", "object FREQ k"},
	{"MULTI", "SET k w", "FLUSHALL", "EXEC", "GET k"},
	{"MULTI", "FLUSHALL", "SET k w", "CONFIG SET maxmemory 1", "DISCARD", "GET k"},
	{"WATCH k", "FLUSHALL", "MULTI", "SET k v2", "EXEC", "GET k"},
	{"WATCH k", "MULTI", "MSET k w", "EXEC", "GET k"},
	{"MULTI", "SUBSCRIBE c", "FLUSHALL", "SET k w", "EXEC", "GET k"},
	{"SSUBSCRIBE c", "SUBSCRIBE c", "FLUSHALL", "PING", "CONFIG SET maxmemory 1", "SSUBSCRIBE d", "UNSUBSCRIBE", "GET k"},
	{"SUBSCRIBE c", "RESET", "FLUSHALL", "GET k"},
	{"CLIENT REPLY SKIP", "FLUSHALL", "GET k", "FLUSHALL"},
	{"CLIENT REPLY OFF", "FLUSHALL", "GET k", "CLIENT REPLY ON", "FLUSHALL", "NONESUCH"},
	{"HELLO 3", "CLIENT TRACKING ON", "GET k", "FLUSHALL", "MULTI", "MSET a b", "EXEC", "GET k"},
	{"HELLO 3", "SUBSCRIBE c", "FLUSHALL", "GET k"},
	{"XGROUP CREATE s g $ MKSTREAM", "XADD s 1-1 a b", "XREADGROUP GROUP g c STREAMS s >", "XREADGROUP GROUP g c BLOCK 1 STREAMS s >",
		"XAUTOCLAIM s g c 0 0", "XPENDING s g"},
	{"MSET k xxxx", "GET k", "MULTI", "MSET k xxxx", "EXEC", "GET k", "SUBSCRIBE c", "MSET k xxxx", "PING"},
}

// Clients are told the same in the same places as by a server whose ACL forbids the commands,
// however they are sent, and nothing that is denied is executed.
func TestDeniedAsByAnACL(t *testing.T) {
	behind, plain := redistest.Start(t), redistest.Start(t)
	for _, name := range denied {
		if got := plain.Do("ACL", "SETUSER", "default", "-"+name); got != "+OK\r\n" {
			t.Fatalf("%s: %s", name, got)
		}
	}
	f := startProxy(t, behind.Addr(), func(c *proxy.Config) { c.Deny = denied })
	forms := map[string]func(dialog []string) []string{
		"in one write": func(d []string) []string { return []string{spoken(d)} },
		"in pieces":    func(d []string) []string { return cutUp(spoken(d)) },
		"inline":       func(d []string) []string { return []string{strings.Join(d, "\r\n") + "\r\n"} },
	}
	for name, form := range forms {
		for _, d := range dialogs {
			t.Run(name+"/"+d[0], func(t *testing.T) {
				f.everyListener(t, func(t *testing.T, addr string) {
					behind.Do("FLUSHALL")
					plain.Do("DEL", "k", "s", "a")
					want := converse(t, plain.Addr(), form(d), -1)
					got := converse(t, addr, form(d), len(want))
					if !slices.Equal(got, want) {
						t.Errorf("%q:\ngot  %.400q\nwant %.400q", d, got, want)
					}
				})
			})
		}
	}
	if stats := behind.Do("INFO", "commandstats"); strings.Contains(stats, "cmdstat_mset:") {
		t.Errorf("MSET was executed: %s", stats)
	}
}

// The server's scripts call what they like: what they may is for its ACLs to say.
func TestDeniedDoesNotBindScripts(t *testing.T) {
	s := redistest.Start(t)
	c := startProxy(t, s.Addr(), func(c *proxy.Config) { c.Deny = denied }).client()
	c.gets("+OK\r\n", "EVAL", "return redis.call('mset', 'k', 'v')", "0")
	c.gets(bulk("v"), "GET", "k")
}

// spoken is a dialog as libraries send it.
func spoken(dialog []string) string {
	var b strings.Builder
	for _, line := range dialog {
		args := strings.Fields(line)
		for i, a := range args {
			if a == "xxxx" {
				args[i] = strings.Repeat(redistest.Command("FLUSHALL"), 6000)
			}
		}
		b.WriteString(redistest.Command(args...))
	}
	return b.String()
}

// cutUp makes pieces that end within words, some hundred at most.
func cutUp(raw string) (pieces []string) {
	size := max(3, len(raw)/300)
	for len(raw) > size {
		pieces, raw = append(pieces, raw[:size]), raw[size:]
	}
	return append(pieces, raw)
}

var (
	idField   = regexp.MustCompile(`(\$2\r\nid\r\n:)\d+`)
	noPermFor = regexp.MustCompile(`^-NOPERM .*('[^']*').*\r\n$`)
)

// converse sends pieces and returns the first n replies, or all up to the end if n is negative, without
// what differs between servers.
func converse(t *testing.T, addr string, pieces []string, n int) (replies []string) {
	t.Helper()
	c, err := redistest.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Timeout = patience
	for _, p := range pieces {
		if err := c.Send(p); err != nil {
			t.Fatal(err)
		}
	}
	if h, ok := c.Conn.(*net.TCPConn); ok && n < 0 {
		_ = h.CloseWrite() // the end that does not come shows
	}
	for len(replies) != n {
		reply, err := c.ReadReply()
		if err != nil {
			if n >= 0 || !errors.Is(err, io.EOF) {
				t.Errorf("after %.300q: %v", replies, err)
			}
			break
		}
		reply = noPermFor.ReplaceAllString(reply, "-NOPERM $1\r\n")
		replies = append(replies, idField.ReplaceAllString(reply, "${1}0"))
	}
	return replies
}

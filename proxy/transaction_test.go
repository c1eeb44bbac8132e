package proxy

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/redistest"
)

// A transaction that the server refuses to begin it may refuse to end as well: the client goes on, and
// the connection, which holds nothing, is no longer the client's.
func TestRefusedTransactionNeverBegan(t *testing.T) {
	const refusal = "-NOPERM no\r\n"
	f := startFake(t)
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		return refusal, slices.Contains([]string{"MULTI", "WATCH", "EXEC", "DISCARD", "UNWATCH"}, args[0])
	})
	p := startProxy(t, f, withoutSpares) // one that is just dialled counts as in use
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

// What a client sends of a transaction in one piece leaves in few: with a system call for each of a
// thousand commands here, and for each at the server, a hundred such clients made everybody wait.
func TestPiecesOfTransactionsTravelTogether(t *testing.T) {
	const commands = 1000
	for _, inner := range [][]string{{"BLPOP", "k", "0"}, {"MULTI"}, {"WATCH", "k"}, {"SOMETHING"}} {
		f := startFake(t)
		f.script(func(_ *fakeConn, args []string) (string, bool) {
			if args[0] == "EXEC" {
				return "*0\r\n", true
			}
			return "+" + args[0] + "\r\n", slices.Contains([]string{"MULTI", inner[0]}, args[0])
		})
		var writes atomic.Int64
		p := startProxy(t, f, func(c *Config) {
			c.BatchEvents.Flushed = func(batcher.FlushReason, int, int, time.Duration) { writes.Add(1) }
		})
		c := p.client()
		expect(t, c, "+MULTI\r\n", "MULTI")
		before := writes.Load()
		if err := c.Send(strings.Repeat(redistest.Command(inner...), commands) + redistest.Command("EXEC")); err != nil {
			t.Fatal(err)
		}
		for range commands {
			expectReply(t, c, "+"+inner[0]+"\r\n")
		}
		expectReply(t, c, "*0\r\n")
		if n := writes.Load() - before; n > commands/20 {
			t.Errorf("%v: %d writes for %d commands", inner, n, commands)
		}
	}
}

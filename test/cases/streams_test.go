//go:build cases

package cases

import (
	"fmt"
	"strings"
	"testing"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
)

// A wake-up was lost: a read was parked a moment before the entry came, and slept to its timeout.
// With $ the entry has to come after the read was parked, so that is waited for.
func TestCase19LostWakeUpOfXRead(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	reader, writer, watch := f.client(), f.client(), &client{s.Client(), t}
	for round := range 300 {
		reader.sends(redistest.Command("XREAD", "BLOCK", "5000", "STREAMS", "s", "$"))
		blockedClients(t, watch, "1")
		id := fmt.Sprint(round+1, "-1")
		writer.gets(bulk(id), "XADD", "s", id, "f", "v")
		reader.replies("*1\r\n*2\r\n" + bulk("s") + entries(id))
	}
}

// With a group the entry arrives whichever comes first, so the two race here.
func TestCase19LostWakeUpOfXReadGroup(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	s.Do("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
	reader, writer := f.client(), f.client()
	for round := range 1000 {
		id := fmt.Sprint(round+1, "-1")
		reader.sends(redistest.Command("XREADGROUP", "GROUP", "g", "c", "BLOCK", "5000", "STREAMS", "s", ">"))
		writer.sends(redistest.Command("XADD", "s", id, "f", "v"))
		reader.replies("*1\r\n*2\r\n" + bulk("s") + entries(id))
		writer.replies(bulk(id))
		reader.gets(":1\r\n", "XACK", "s", "g", id)
	}
}

// entries renders the entries of one stream, each with the field f and the value v.
func entries(ids ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(ids))
	for _, id := range ids {
		b.WriteString("*2\r\n" + bulk(id) + "*2\r\n" + bulk("f") + bulk("v"))
	}
	return b.String()
}

// nothingPending is XPENDING's summary of a group without pending entries.
const nothingPending = "*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n"

// A blocked read of a group outlived its client, and took the next entry for nobody.
func TestCase20AbandonedXReadGroup(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	watch := &client{s.Client(), t}
	f.everyListener(t, func(t *testing.T, addr string) {
		for _, leave := range []string{"closed", "reset"} {
			stream := addr + leave
			watch.gets("+OK\r\n", "XGROUP", "CREATE", stream, "g", "$", "MKSTREAM")
			c := connect(t, addr)
			c.sends(redistest.Command("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", stream, ">"))
			blockedClients(t, watch, "1")
			leavings[leave](c)
			blockedClients(t, watch, "0")
			watch.ask("XADD", stream, "*", "f", "v")
			watch.gets(nothingPending, "XPENDING", stream, "g")
		}
	})
}

// The server already has an entry for a blocked read when it hears that the client has left: it was
// stopped meanwhile. The entry stays pending with a delivery count of 0, never silently read.
func TestCase58EntryForAClientThatLeft(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	link := startLink(t, s.Addr())
	f := startProxy(t, link.Addr())
	watch := &client{s.Client(), t}
	for round := range 20 {
		stream := fmt.Sprint("s", round)
		watch.gets("+OK\r\n", "XGROUP", "CREATE", stream, "g", "$", "MKSTREAM")
		c := f.client()
		c.sends(redistest.Command("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", stream, ">"))
		blockedClients(t, watch, "1")
		s.Stop()
		watch.sends(redistest.Command("XADD", stream, "1-1", "f", "v"))
		sent := link.Stats().Arrived[netlab.ToUpstream]
		reset(c.Conn)
		eventually(t, "the proxy calls the read back", func() bool { return link.Stats().Arrived[netlab.ToUpstream] > sent })
		s.Cont()
		watch.replies(bulk("1-1"))
		blockedClients(t, watch, "0")
		var pending string
		eventually(t, "the entry is given back", func() bool {
			pending = watch.ask("XPENDING", stream, "g", "-", "+", "10")
			return strings.HasSuffix(pending, "\r\n:0\r\n") || pending == "*0\r\n"
		})
		if pending == "*0\r\n" { // the server heard of the client first
			watch.gets("*1\r\n*2\r\n"+bulk(stream)+entries("1-1"), "XREADGROUP", "GROUP", "g", "c2", "STREAMS", stream, ">")
			t.Logf("round %d: the entry was never read", round)
			continue
		}
		if !strings.Contains(pending, bulk("1-1")+bulk("c")) {
			t.Fatalf("round %d: pending is %q", round, pending)
		}
	}
}

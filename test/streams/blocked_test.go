//go:build streams

package streams

import (
	"strings"
	"testing"
	"time"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// unknownOutcome is what a client hears of a command that may have been executed.
const unknownOutcome = "-ERR streamproxy: upstream connection lost; outcome unknown\r\n"

// A client's own timeout is as long as its BLOCK, and the server is 28 ms away: the null arrives in
// time all the same.
func TestCase52BlockAsLongAsTheClientsPatience(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--hz", "500")) // else an idle server is 100 ms late
	link := startLink(t, s.Addr())
	link.SetDelay(14 * time.Millisecond)
	f := startProxy(t, link.Addr())
	at := direct(t, s)
	groups(at, "g", []string{"s"})
	c := f.client()
	c.learn("g", "c", minIdleMillis, "s") // and some round trips are measured
	for _, read := range [][]string{
		readCommand("g", "c", 10, 500*time.Millisecond, []string{"s"}),
		{"XREAD", "BLOCK", "500", "STREAMS", "s", "$"},
	} {
		other := connect(t, link.Addr())
		beside, here := soonest(other, read), soonest(c, read)
		for range 5 { // the soonest of many is what a machine without neighbours would show
			if here <= beside-10*time.Millisecond {
				break
			}
			beside, here = min(beside, soonest(other, read)), min(here, soonest(c, read))
		}
		t.Logf("%s: the null of a BLOCK of 500 ms came after %v, directly after %v", read[0], here, beside)
		if here < 450*time.Millisecond || here > beside-10*time.Millisecond {
			t.Errorf("%s: the null came after %v, directly after %v", read[0], here, beside)
		}
	}
}

// soonest is the shortest of some reads of nothing: a busy machine may be late now and then.
func soonest(c *client, read []string) time.Duration {
	best := time.Hour
	for range 5 {
		begin := time.Now()
		c.gets(nothingRead, read...)
		best = min(best, time.Since(begin))
	}
	return best
}

// The upstream connection of a blocked read is cut. The client need not notice: its read goes on
// over another one, brings what comes, or ends at its own time.
func TestCase54CutUnderABlockedRead(t *testing.T) {
	t.Parallel()
	for name, read := range map[string][]string{
		"explicit id": {"XREAD", "BLOCK", "1500", "STREAMS", "s", "0-0"},
		"group":       {"XREADGROUP", "GROUP", "g", "c", "BLOCK", "1500", "STREAMS", "s", ">"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			link := startLink(t, s.Addr())
			f := startProxy(t, link.Addr())
			at, c := direct(t, s), f.client()
			groups(at, "g", []string{"s"})
			begin := time.Now()
			c.sends(read...)
			at.blocked(1)
			link.Cut()
			if got := c.reply(); got != nothingRead {
				t.Fatalf("got %q", got)
			}
			if took := time.Since(begin); took < 1400*time.Millisecond || took > 1500*time.Millisecond+slack {
				t.Errorf("the null came after %v", took)
			}
			c.sends(read...)
			at.blocked(1)
			link.Cut()
			at.blocked(1) // again
			at.gets(bulk("1-1"), "XADD", "s", "1-1", "f", "v")
			if got := c.reply(); got != "*1\r\n*2\r\n"+bulk("s")+entries("1-1") {
				t.Errorf("got %q", got)
			}
			c.gets("+PONG\r\n", "PING")
		})
	}
}

// The server has handed an entry to a blocked read when the upstream connection is lost, and the reply
// with it. An empty answer, or one that brings the next entry, would hide it: the client is told that
// the outcome is unknown, and finds it in its history. What was pending before says nothing.
func TestCutWithAnEntryOnItsWay(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s := redistest.Start(t)
		link := startLink(t, s.Addr())
		f := startProxy(t, link.Addr(), hasty)
		at, c := direct(t, s), f.client()
		groups(at, "g", []string{"s", "t"})
		at.gets(bulk("1-1"), "XADD", "s", "1-1", "f", "v")
		read := []string{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "t", "s", ">", ">"}
		if got := c.ask(read...); got != "*1\r\n*2\r\n"+bulk("s")+entries("1-1") {
			t.Fatalf("got %q", got)
		}
		eventually(t, "that was a while ago", func() bool {
			return !strings.HasSuffix(at.ask("XPENDING", "s", "g", "IDLE", "20", "-", "+", "9"), "*0\r\n")
		})
		c.sends(read...)
		at.blocked(1)
		lost := reader(at)
		link.Cut()
		eventually(t, "the read goes on", func() bool { now := reader(at); return now != "" && now != lost })
		link.Drop(netlab.ToClient, true)
		at.gets(bulk("2-1"), "XADD", "s", "2-1", "f", "v")
		link.Reset()
		link.Drop(netlab.ToClient, false)
		if got := c.reply(); got != unknownOutcome {
			t.Errorf("got %q", got)
		}
		if got := c.ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "1-1"); got != "*1\r\n*2\r\n"+bulk("s")+entries("2-1") {
			t.Errorf("its history is %q", got)
		}
	})
}

// The server does not notice that the connection of a blocked read is lost: it is told, lest it hand
// the next entry to nobody.
func TestLostReadGetsNothingMore(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s := redistest.Start(t)
		link := startLink(t, s.Addr())
		f := startProxy(t, link.Addr(), hasty)
		at, c := direct(t, s), f.client()
		groups(at, "g", []string{"s"})
		c.sends("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">")
		at.blocked(1)
		lost := reader(at)
		link.Drop(netlab.ToUpstream, true)
		link.HalfClose(netlab.ToClient)
		eventually(t, "the proxy has lost all", func() bool { st := f.Stats(); return st.Lanes+st.PrivateBusy+st.PrivateIdle == 0 })
		link.Drop(netlab.ToUpstream, false)
		eventually(t, "the read waits again, and only once", func() bool {
			now := reader(at)
			return now != "" && now != lost && strings.Contains(at.ask("INFO", "clients"), "\nblocked_clients:1\r\n")
		})
		at.gets(bulk("1-1"), "XADD", "s", "1-1", "f", "v")
		if got := c.reply(); got != "*1\r\n*2\r\n"+bulk("s")+entries("1-1") {
			t.Errorf("got %q", got)
		}
	})
}

// hasty dials anew when nothing is heard for a moment.
func hasty(c *proxy.Config) { c.DialTimeout = 300 * time.Millisecond }

// reader is the server's id of the connection on which a read of a group is blocked, or nothing.
func reader(at *client) string {
	for line := range strings.Lines(at.ask("CLIENT", "LIST")) {
		if strings.Contains(line, " flags=b ") && strings.Contains(line, " cmd=xreadgroup ") {
			id, _, _ := strings.Cut(line[strings.Index(line, "id=")+3:], " ")
			return id
		}
	}
	return ""
}

// Reads without an end are taken up again as often as it takes.
func TestCase54BlockWithoutEnd(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	link := startLink(t, s.Addr())
	f := startProxy(t, link.Addr())
	at, c := direct(t, s), f.client()
	groups(at, "g", []string{"s"})
	c.sends("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">")
	lost := ""
	again := func() bool { id := reader(at); return id != "" && id != lost } // not the one that was cut
	for range 3 {
		eventually(t, "it reads", again)
		lost = reader(at)
		link.Cut()
	}
	eventually(t, "it reads", again)
	at.gets(bulk("1-1"), "XADD", "s", "1-1", "f", "v")
	if got := c.reply(); got != "*1\r\n*2\r\n"+bulk("s")+entries("1-1") {
		t.Errorf("got %q", got)
	}
}

// Where the lost read may have had an answer that would be denied, the client is told at once, and
// its connection stays.
func TestCase54UnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, read := range map[string][]string{
		"new entries only": {"XREAD", "BLOCK", "5000", "STREAMS", "s", "$"},
		"without pending":  {"XREADGROUP", "GROUP", "g", "c", "NOACK", "BLOCK", "5000", "STREAMS", "s", ">"},
		"a list":           {"BLPOP", "l", "5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			link := startLink(t, s.Addr())
			f := startProxy(t, link.Addr())
			at, c := direct(t, s), f.client()
			groups(at, "g", []string{"s"})
			c.sends(read...)
			at.blocked(1)
			begin := time.Now()
			link.Cut()
			if got := c.reply(); got != unknownOutcome {
				t.Errorf("got %q", got)
			}
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("the client heard of it after %v", took)
			}
			eventually(t, "the connection serves on", func() bool { return strings.HasPrefix(c.ask("PING"), "+PONG") })
		})
	}
}

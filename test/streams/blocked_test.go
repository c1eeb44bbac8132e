//go:build streams

package streams

import (
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
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

// Reads without an end are taken up again as often as it takes.
func TestCase54BlockWithoutEnd(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	link := startLink(t, s.Addr())
	f := startProxy(t, link.Addr())
	at, c := direct(t, s), f.client()
	groups(at, "g", []string{"s"})
	c.sends("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">")
	for range 3 {
		at.blocked(1)
		link.Cut()
	}
	at.blocked(1)
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

//go:build cases

package cases

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
)

// An INCR is executed and the connection cut before its reply: the counter has grown by one, never
// by two, and the error says that the outcome is unknown.
func TestCase44CutBeforeTheReply(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	link := startLink(t, s.Addr())
	f := startProxy(t, link.Addr())
	watch := &client{s.Client(), t}
	f.everyListener(t, func(t *testing.T, addr string) {
		c := connect(t, addr)
		for round := range 8 {
			key := fmt.Sprint(addr, round)
			c.gets("+OK\r\n", "SET", key, "0")
			link.Drop(netlab.ToClient, true)
			c.sends(redistest.Command("INCR", key))
			eventually(t, "the server counts", func() bool { return watch.ask("GET", key) == bulk("1") })
			link.Reset()
			link.Drop(netlab.ToClient, false)
			c.replies(unknownOutcome)
			c.gets(bulk("1"), "GET", key)
		}
	})
}

// Of a pipeline that goes with the connection, the first was written, the others were not: the
// first is unknown, the others are not sent, and they were not. The lane is full at that moment,
// with what another client sends into a link that takes nothing.
func TestCase61FirstUnknownOthersNotSent(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	link := startLink(t, s.Addr())
	f := startProxy(t, link.Addr())
	c, watch := f.client(), &client{s.Client(), t}
	f.client().gets("$-1\r\n", "GET", "none") // the newcomers' lane is there, which both others share
	for _, d := range []netlab.Dir{netlab.ToClient, netlab.ToUpstream} {
		link.Stall(d)
		if d == netlab.ToClient {
			c.sends(redistest.Command("INCR", "a"))
			eventually(t, "the server counts", func() bool { return watch.ask("GET", "a") == bulk("1") })
		}
	}
	fill(t, f)
	c.sends(redistest.Command("INCR", "b") + redistest.Command("INCR", "c"))
	link.Reset()
	link.Resume(netlab.ToClient)
	link.Resume(netlab.ToUpstream)
	c.replies(unknownOutcome, notSent, notSent)
	c.gets("*3\r\n"+bulk("1")+"$-1\r\n$-1\r\n", "MGET", "a", "b", "c")
}

// fill sends a large command over each of many clients, more than sockets hold, and returns when the
// last has been taken for a while. A second one of the same client would travel apart.
func fill(t *testing.T, f *front) {
	t.Helper()
	var taken atomic.Int64
	clients := make([]*client, 400)
	for i := range clients {
		clients[i] = f.client()
	}
	go func() { // ends with the connections
		set := redistest.Command("SET", "filler", strings.Repeat("x", 60<<10))
		for _, c := range clients {
			if c.Send(set) != nil {
				return
			}
			taken.Add(1)
		}
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	seen, still := int64(-1), 0
	for deadline := time.After(patience); still < 30; {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the lane takes everything")
		}
		now := taken.Load()
		if still++; now != seen {
			seen, still = now, 0
		}
	}
}

// What a client sends without waiting for the first reply belongs to the same pipeline, also while
// it lies unread in the socket because the proxy waits for an upstream: when the first has failed
// and the upstream is back that very moment, the others still must not run. What the client sends
// when it knows of the failure is another matter.
func TestCase61PipelineIsNotTorn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	f.everyListener(t, func(t *testing.T, addr string) {
		c := connect(t, addr)
		c.gets("+PONG\r\n", "PING")
		for range 2 {
			s.Kill()
			eventually(t, "every connection is lost", func() bool {
				st := f.Stats()
				return st.Lanes+st.PrivateIdle+st.PrivateBusy == 0
			})
			c.sends(redistest.Command("INCR", "a"))
			<-time.After(20 * time.Millisecond) // most likely read by then; the result is the same either way
			c.sends(redistest.Command("INCR", "b") + redistest.Command("INCR", "c"))
			c.replies(notSent)
			s.Restart()
			c.replies(notSent, notSent)
			eventually(t, "a reply again", func() bool {
				return c.ask("MGET", "a", "b", "c") == "*3\r\n$-1\r\n$-1\r\n$-1\r\n"
			})
		}
	})
}

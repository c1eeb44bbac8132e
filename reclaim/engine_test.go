package reclaim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// testMinIdle and testInterval are those of most tests.
const (
	testMinIdle  = 60 * time.Second
	testInterval = 10 * time.Second
)

const testMinIdleMS = "60000"

// world is a server and engines in front of it, in a bubble.
type world struct {
	t       *testing.T
	srv     *fakeServer
	engines []*Engine
	clients []*testClient
	local   tally // commands answered by engines
	entries tally // what Events.Entries counted
	forward tally
}

// tally counts by name.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[name] += n
}

func (c *tally) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

// inWorld runs a test in a bubble, and closes its engines at the end.
func inWorld(t *testing.T, engines int, change func(*Config), test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, srv: newFakeServer()}
		w.srv.latency.Store(int64(5 * time.Millisecond))
		for i := range engines {
			w.start(fmt.Sprintf("proxy%d", i), change)
		}
		w.t = t
		test(w)
		for _, e := range w.engines {
			e.audit(w.t)
			e.auditMemory(w.t, w.clients)
			e.Close()
		}
	})
}

// audit compares what is counted and indexed as things change with the things.
func (e *Engine) audit(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	hots, leases, profiles, waiting := 0, 0, 0, 0
	for _, target := range e.targets {
		profiles += len(target.profiles)
		for _, p := range target.profiles {
			if p.hot != nil {
				hots++
			}
		}
		if !slices.Contains(e.known.of([]byte(target.stream)), target) || !slices.Contains(e.locks.of([]byte(target.locks[0])), target) {
			t.Errorf("%v is not found", target.targetKey)
		}
	}
	for _, s := range e.sweeps {
		if s.leading {
			leases++
		}
		if s.place >= 0 {
			waiting++
		}
		for _, name := range s.streams {
			if _, ok := e.covering[name][s]; !ok {
				t.Errorf("the sweep of %s is not found", name)
			}
		}
	}
	if e.hots != hots || e.leases != leases || e.profiles != profiles || len(e.agenda) != waiting || e.known.empty() != (len(e.targets) == 0) {
		t.Errorf("%d hot of %d, %d leases, %d wait; counted %d of %d, %d, %d", hots, profiles, leases, waiting, e.hots, e.profiles, e.leases, len(e.agenda))
	}
}

func (w *world) start(name string, change func(*Config)) *Engine {
	cfg := DefaultConfig()
	cfg.Interval = testInterval
	cfg.Instance = name
	cfg.Events = Events{
		Local:     func(c string) { w.local.add(c, 1) },
		Forwarded: func(r string) { w.forward.add(r, 1) },
		Entries:   func(action, _, _ string, n int) { w.entries.add(action, n) },
	}
	if change != nil {
		change(&cfg)
	}
	e, err := New(cfg, w.srv)
	if err != nil {
		w.t.Fatal(err)
	}
	e.Start()
	w.engines = append(w.engines, e)
	return e
}

func (w *world) client(e int) *testClient {
	c := newTestClient(w.t, w.engines[e], w.srv, Identity{Proto: 2})
	w.clients = append(w.clients, c)
	return c
}

// streams makes streams with a group g and returns their names.
func (w *world) streams(n int) (names []string) {
	for i := range n {
		s := fmt.Sprintf("s%02d", i)
		w.raw("XGROUP", "CREATE", s, "g", "$", "MKSTREAM")
		names = append(names, s)
	}
	return names
}

// raw runs a command at the server, past every engine, in no time.
func (w *world) raw(args ...string) string {
	w.srv.mu.Lock()
	defer w.srv.mu.Unlock()
	return w.srv.do(args)
}

func readArgs(consumer string, streams []string, options ...string) []string {
	args := append([]string{"XREADGROUP", "GROUP", "g", consumer}, options...)
	args = append(append(args, "STREAMS"), streams...)
	for range streams {
		args = append(args, ">")
	}
	return args
}

func claimArgs(stream, consumer string) []string {
	return []string{"XAUTOCLAIM", stream, "g", consumer, testMinIdleMS, "0-0", "COUNT", "10"}
}

const emptySeven = "*3\r\n$3\r\n0-0\r\n*0\r\n*0\r\n"

// abandon lets a consumer that is no client here take an entry and forget it.
func (w *world) abandon(stream string) (id string) {
	reply := w.raw("XADD", stream, "*", "k", "v")
	w.raw(readArgs("dead", []string{stream})...)
	return textOf([]byte(reply))
}

func TestFirstPassIsLearnedInOneRoundTripMore(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(161)
		time.Sleep(time.Second) // the engine is not new
		c := w.client(0)
		c.do(readArgs("w", names)...)
		start := time.Now()
		for _, s := range names {
			if got := c.do(claimArgs(s, "w")...); got != emptySeven {
				w.t.Fatalf("%s: %q", s, got)
			}
		}
		// The first XAUTOCLAIM and the learning: two round trips of 10 ms.
		if took := time.Since(start); took > 20*time.Millisecond {
			w.t.Errorf("the first pass took %v", took)
		}
		if n := w.local.of("xautoclaim"); n != 160 {
			w.t.Errorf("%d of 160 claims answered here", n)
		}
		start = time.Now()
		for _, s := range names {
			c.do(claimArgs(s, "w")...)
		}
		if took := time.Since(start); took != 0 {
			w.t.Errorf("the second pass took %v", took)
		}
	})
}

func TestAbandonedEntryIsClaimedForWhoAsks(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(3)
		id := w.abandon(names[1])
		c := w.client(0)
		c.do(readArgs("w", names)...)
		deadline := time.Now().Add(testMinIdle + 2*testInterval)
		for {
			got := ""
			for _, s := range names {
				got += c.do(claimArgs(s, "w")...)
			}
			if strings.Contains(got, id) {
				break
			}
			if time.Now().After(deadline) {
				w.t.Fatal("not recovered in time")
			}
			time.Sleep(time.Second)
		}
		if got := w.raw("XPENDING", names[1], "g", "-", "+", "9"); !strings.Contains(got, "$1\r\nw\r\n:0\r\n:2\r\n") &&
			!strings.Contains(got, "$1\r\nw\r\n:5\r\n:2\r\n") {
			w.t.Errorf("pending: %q", got)
		}
		if w.entries.of("claimed") != 1 || w.entries.of("delivered") != 1 {
			w.t.Errorf("claimed %d, delivered %d", w.entries.of("claimed"), w.entries.of("delivered"))
		}
		if got := c.do(claimArgs(names[1], "w")...); got != emptySeven {
			w.t.Errorf("after the claim: %q", got)
		}
	})
}

func TestNextHotStreamsOfAPassAreClaimedAlong(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(12)
		for _, s := range names {
			w.abandon(s)
		}
		time.Sleep(testMinIdle + time.Second)
		c := w.client(0)
		c.do(readArgs("w", names)...)
		c.do("XAUTOCLAIM", "other", "g", "w", testMinIdleMS, "0-0") // no such group: learns nothing
		w.raw("XGROUP", "CREATE", "warm", "g", "$", "MKSTREAM")
		before := w.srv.executed("EXEC")
		start := time.Now()
		for _, s := range names {
			if got := c.do(claimArgs(s, "w")...); !strings.Contains(got, "$1\r\nk\r\n") {
				w.t.Errorf("%s: %q", s, got)
			}
		}
		// The first is forwarded; the learning; then one claim for nine, one for two.
		if took := time.Since(start); took > 50*time.Millisecond {
			w.t.Errorf("took %v", took)
		}
		if n := w.srv.executed("EXEC") - before; n != 11 {
			w.t.Errorf("%d transactions", n)
		}
	})
}

func TestWhatIsNotFetchedGoesBack(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(3)
		ids := []string{w.abandon(names[0]), w.abandon(names[1]), w.abandon(names[2])}
		time.Sleep(testMinIdle + time.Second)
		c := w.client(0)
		c.do(readArgs("w", names)...)
		c.do(claimArgs(names[0], "w")...) // forwarded
		c.do(claimArgs(names[1], "w")...) // claims, and for the third
		if n := w.engines[0].heldNow(); n != 1 {
			w.t.Fatalf("%d held", n)
		}
		time.Sleep(holdTime + 100*time.Millisecond)
		got := w.raw("XPENDING", names[2], "g", "-", "+", "9")
		if !strings.Contains(got, "$4\r\ndead\r\n:62") || !strings.HasSuffix(got, ":1\r\n") {
			w.t.Errorf("not as it was: %q", got)
		}
		if got := c.do(claimArgs(names[2], "w")...); !strings.Contains(got, ids[2]) {
			w.t.Errorf("its own asking: %q", got)
		}
		if w.entries.of("given_back") != 1 {
			w.t.Errorf("given back %d", w.entries.of("given_back"))
		}
	})
}

func TestHeldEntriesGoBackWhenTheirConsumerLeaves(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(3)
		for _, s := range names {
			w.abandon(s)
		}
		time.Sleep(testMinIdle + time.Second)
		c := w.client(0)
		c.do(readArgs("w", names)...)
		c.do(claimArgs(names[0], "w")...)
		c.do(claimArgs(names[1], "w")...)
		c.s.Leave()
		time.Sleep(100 * time.Millisecond)
		if got := w.raw("XPENDING", names[2], "g", "-", "+", "9"); !strings.Contains(got, "dead") {
			w.t.Errorf("not given back: %q", got)
		}
	})
}

func TestDrainGivesBackAndResigns(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(3)
		for _, s := range names {
			w.abandon(s)
		}
		c := w.client(0)
		c.do(readArgs("w", names)...)
		c.do(claimArgs(names[0], "w")...)
		for range 90 {
			time.Sleep(time.Second)
			c.do(readArgs("w", names)...)
		}
		if n := w.srv.keyCount(); n != 1 {
			w.t.Fatalf("%d leases", n)
		}
		c.do(claimArgs(names[0], "w")...)
		w.engines[0].Drain(context.Background())
		if n := w.srv.keyCount(); n != 0 {
			w.t.Errorf("%d leases kept", n)
		}
		for _, s := range names[1:] {
			if got := w.raw("XPENDING", s, "g", "-", "+", "9"); !strings.Contains(got, "dead") {
				w.t.Errorf("%s not given back: %q", s, got)
			}
		}
		if got := c.do(claimArgs(names[1], "w")...); !strings.Contains(got, "$1\r\nk\r\n") {
			w.t.Errorf("not forwarded: %q", got)
		}
	})
}

func (e *Engine) heldNow() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heldN
}

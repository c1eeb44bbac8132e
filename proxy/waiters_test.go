package proxy

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/redistest"
)

// Who waits for a connection is served in the order of arrival, by whatever comes first, and who
// has left is passed over.
func TestWaitersAreServedInOrder(t *testing.T) {
	var s spares
	conns := []*batcher.Conn{{}, {}, {}}
	var waiting []*waiter
	for range 3 {
		c, w := s.reserve((*spares).last, claim{})
		if c != nil {
			t.Fatal("a spare out of nothing")
		}
		waiting = append(waiting, w)
	}
	if _, late := s.leave(waiting[1]); late {
		t.Error("served before there was anything")
	}
	for _, c := range conns {
		s.push(c)
	}
	for i, w := range []*waiter{waiting[0], waiting[2]} {
		if got, late := s.leave(w); !late || got.conn != conns[i] {
			t.Errorf("waiter %d got %p, %v", i, got.conn, late)
		}
	}
	if c, w := s.reserve((*spares).last, claim{}); c != conns[2] || w != nil {
		t.Error("what nobody waited for is no spare")
	}
	_, w := s.reserve((*spares).last, claim{})
	refusal := errors.New("no")
	s.refuse(refusal)
	if got := <-w.served; got.err != refusal || s.wanted(0) != 0 {
		t.Errorf("%+v, %d wanted", got, s.wanted(0))
	}
}

// Who had a connection before gets every second one, and strangers the others.
func TestRegularsDoNotWaitForACrowd(t *testing.T) {
	var s spares
	var order []*waiter
	join := func(regular bool) *waiter {
		_, w := s.reserve((*spares).last, claim{regular: regular})
		return w
	}
	strangers := []*waiter{join(false), join(false), join(false), join(false)}
	regulars := []*waiter{join(true), join(true)}
	for range 6 {
		s.push(&batcher.Conn{})
		for _, w := range append(slices.Clone(strangers), regulars...) {
			if len(w.served) > 0 && !slices.Contains(order, w) {
				order = append(order, w)
			}
		}
	}
	want := []*waiter{regulars[0], strangers[0], regulars[1], strangers[1], strangers[2], strangers[3]}
	if !slices.Equal(order, want) {
		t.Errorf("served %v, want %v", order, want)
	}
}

// There are as many dialers as are waited for, up to a bound, and none that nobody needs.
func TestDialersAreHired(t *testing.T) {
	const most = 12
	var s spares
	for i, want := range []bool{true, true, false} {
		if s.hire(2, most) != want {
			t.Errorf("for two spares: dialer %d: %v", i, !want)
		}
	}
	for range 2 * most {
		s.reserve((*spares).last, claim{})
	}
	for s.hire(2, most) {
	}
	if s.dialing != most {
		t.Errorf("%d dialers", s.dialing)
	}
	if !s.goOn(2, errors.New("away")) {
		t.Error("dismissed after a failure while others wait")
	}
	for range 2*most + 2 {
		s.push(&batcher.Conn{})
	}
	for s.dialing > 0 {
		if s.goOn(2, nil) {
			t.Fatal("dials for nobody")
		}
	}
	if !s.hire(3, most) || s.goOn(3, errors.New("away")) {
		t.Error("a spare is worth a second attempt")
	}
}

// resets ends a client's connection at once, without an orderly end.
func resets(c *redistest.Client) {
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// A client that resets its connection while it waits for one to the server leaves at once; one that has
// only ended its sending direction stays, and what it sent is executed.
func TestClientThatResetsLeavesTheQueue(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(cfg *Config) { cfg.PrivateMinIdle, cfg.UpstreamWait = 0, time.Minute })
	expect(t, p.client(), bulkReply("a"), "GET", "a")
	until(t, "the server", p.health.up.Load)
	f.setMute(true)
	for _, command := range []string{redistest.Command("MULTI"), redistest.Command("BLPOP", "k", "0"), "*2\r\n$3\r\nGET\r\n$1000000\r\n" + strings.Repeat("x", largeCommand)} {
		c := p.client()
		if err := c.Send(command); err != nil {
			t.Fatal(err)
		}
		until(t, "it to wait", func() bool { return p.waiting() == 1 })
		resets(c)
		until(t, "it to leave", func() bool { return p.Stats().Clients == 1 })
		if n := p.waiting(); n != 0 {
			t.Errorf("%.20q: %d wait", command, n)
		}
	}
	c := p.client()
	if err := c.Send(redistest.Command("RPUSH", "k", strings.Repeat("x", largeCommand))); err != nil {
		t.Fatal(err)
	}
	until(t, "it to wait", func() bool { return p.waiting() == 1 })
	c.Conn.(*net.TCPConn).CloseWrite()
	f.setMute(false)
	f.cut("") // what was swallowed; dials begin anew
	f.await(t, "RPUSH", 1)
}

// What stands behind is not answered one by one as not executed, for nobody.
func TestClientThatResetsIsNotAnswered(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(cfg *Config) { cfg.PrivateMinIdle, cfg.UpstreamWait = 0, time.Minute })
	expect(t, p.client(), bulkReply("a"), "GET", "a")
	until(t, "the server", p.health.up.Load)
	f.setMute(true)
	for _, command := range []string{redistest.Command("MULTI"), redistest.Command("BLPOP", "k", "0")} {
		before := p.Stats().Commands
		c := p.client()
		if err := c.Send(command + strings.Repeat(redistest.Command("GET", "behind"), 100)); err != nil {
			t.Fatal(err)
		}
		until(t, "it to wait", func() bool { return p.waiting() == 1 })
		resets(c)
		until(t, "it to leave", func() bool { return p.Stats().Clients == 1 })
		if n := p.Stats().Commands - before; n > 2 {
			t.Errorf("%.20q: %d commands", command, n)
		}
	}
}

// waiting is how many wait for a private connection of the default key.
func (p *testProxy) waiting() int {
	h := p.hubOf(p.defaultKey())
	defer p.leaveHub(h)
	h.spares.mu.Lock()
	defer h.spares.mu.Unlock()
	return len(h.spares.waiting)
}

// Clients that leave in the middle of a transaction, or while they watch, do not cost a dial each: the
// server is told to forget it. Where it may have been told more, the connection ends.
func TestLeavingATransactionCostsNoDial(t *testing.T) {
	f := startFake(t)
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		return "+OK\r\n", slices.Contains([]string{"MULTI", "WATCH", "DISCARD", "UNWATCH"}, args[0])
	})
	p := startProxy(t, f, func(cfg *Config) { cfg.PrivateMinIdle = 1 })
	expect(t, p.client(), bulkReply("a"), "GET", "a")
	until(t, "a spare", func() bool { return p.Stats().PrivateIdle == 1 })
	leave := func(commands ...[]string) {
		c := p.client()
		for _, args := range commands {
			if _, err := c.Do(args...); err != nil {
				t.Fatal(err)
			}
		}
		resets(c)
		until(t, "it to leave", func() bool { return p.Stats().Clients == 1 && len(p.txSlots) == 0 })
	}
	before := f.dials()
	for range 10 {
		leave([]string{"MULTI"}, []string{"SET", "a", "b"})
		leave([]string{"WATCH", "a"}, []string{"GET", "a"})
	}
	if n := f.dials() - before; n > 5 { // a few: the next client may come before the connection is clean
		t.Errorf("%d dials for 20 clients", n)
	}
	f.await(t, "DISCARD", 10)
	f.await(t, "UNWATCH", 10)
	private := func() int { return f.kinds("private") }
	old := private()
	leave([]string{"MULTI"}, []string{"SELECT", "3"})
	until(t, "it to be replaced", func() bool { return f.dials() > before && private() >= min(old, 1) })
	expect(t, p.client(), bulkReply("a"), "GET", "a")
}

// A pipeline of more bytes than a server reads of one client at a time does not stand before others on
// the lane; a single command may, and what is left of a longer pipeline counts.
func TestPipelinesBeyondATurnTravelApart(t *testing.T) {
	f := startLibrary(t)
	p := startProxy(t, f, withoutSpares)
	c := p.client()
	settle(t, p, c)
	f.seenSince()
	long := strings.Repeat("k", 1000)
	for _, tt := range []struct {
		n    int
		kind string
	}{{15, "lane"}, {17, "private"}, {1, "lane"}, {40, "private"}} {
		keys := slices.Repeat([]string{long}, tt.n)
		asks(t, c, keys...)
		if seen := f.seenSince(); len(seen) != tt.n || slices.ContainsFunc(seen, func(s string) bool { return !strings.HasPrefix(s, tt.kind) }) {
			t.Errorf("%d commands of a kilobyte: %d, the first by %.10q", tt.n, len(seen), seen[0])
		}
	}
	expect(t, c, bulkReply(strings.Repeat("x", 60_000)), "GET", strings.Repeat("x", 60_000))
	if seen := f.seenSince(); len(seen) != 1 || !strings.HasPrefix(seen[0], "lane") {
		t.Errorf("one of sixty kilobytes: %.20q", seen)
	}
}

// Where there is no private connection to be had, a long pipeline takes the lane: it fails only with that.
func TestLongPipelineWithoutAPrivateConnection(t *testing.T) {
	f := startLibrary(t)
	p := startProxy(t, f, func(cfg *Config) { cfg.PrivateMinIdle, cfg.UpstreamWait = 0, 50*time.Millisecond })
	c := p.client()
	asks(t, c, "k")
	until(t, "the server", p.health.up.Load)
	f.script(func(_ *fakeConn, args []string) (string, bool) { return "", args[0] == "HELLO" || args[0] == "CLIENT" })
	asks(t, c, slices.Repeat([]string{strings.Repeat("k", 1000)}, 40)...)
}

// Large replies have places on the lane: who asks for one more than there are has a connection of its own.
func TestLargeRepliesHavePlaces(t *testing.T) {
	f := startLibrary(t)
	p := startProxy(t, f, withoutSpares)
	var clients []*redistest.Client
	const places = maxNovices / (400_000 / place)
	for range places + 3 {
		c := p.client()
		for range 4 {
			asks(t, c, "large")
		}
		clients = append(clients, c)
	}
	f.seenSince()
	for _, c := range clients {
		if err := c.SendCommand("GET", "silence"); err != nil {
			t.Fatal(err)
		}
	}
	count := map[string]int{}
	until(t, "all to be asked", func() bool {
		for _, s := range f.seenSince() {
			count[s]++
		}
		return count["lane silence"]+count["private silence"] == len(clients)
	})
	if n := count["lane silence"]; n < places-1 || n > places+1 {
		t.Errorf("%d of %d on the lane, want about %d", n, len(clients), places)
	}
}

// Who has had no reply yet does not stand before those who have: newcomers have a lane of their own, which
// they leave for the others' as soon as they are known and nothing of theirs is under way.
func TestNewcomersHaveALane(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	id := func(c *redistest.Client) string {
		got, err := c.Do("GET", "id")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	f.script(func(c *fakeConn, args []string) (string, bool) {
		return fmt.Sprintf(":%d\r\n", c.id), args[0] == "GET" && args[1] == "id"
	})
	old := p.client()
	trial := id(old)
	until(t, "the others' lane", func() bool { return id(old) != trial })
	others := id(old)
	for range 3 {
		c := p.client()
		if got := id(c); got != trial {
			t.Errorf("a newcomer's first command went over %q, want %q", got, trial)
		}
		if got := id(c); got != others {
			t.Errorf("the second one went over %q, want %q", got, others)
		}
	}
	f.script(func(c *fakeConn, args []string) (string, bool) {
		switch {
		case args[0] != "GET" || args[1] != "id":
			return "", args[0] == "GET" && args[1] == "silence"
		}
		return fmt.Sprintf(":%d\r\n", c.id), true
	})
	busy := p.client()
	if err := busy.Send(redistest.Command("GET", "id") + redistest.Command("GET", "silence")); err != nil {
		t.Fatal(err)
	}
	expectReply(t, busy, trial)
	if err := busy.SendCommand("GET", "silence"); err != nil { // behind the one that is under way
		t.Fatal(err)
	}
	if got := id(old); got != others {
		t.Errorf("over %q", got)
	}
}

// A client that leaves while its WAIT is the last command of a lane leaves that connection to one taker:
// twice among the spares, two clients would have it at a time.
func TestLeavingAWaitGivesBackOnce(t *testing.T) {
	f := startFake(t)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] != "WAIT" {
			return "", false
		}
		c.blocked = true
		return "", true
	})
	p := startProxy(t, f, nil)
	h := p.hubOf(p.defaultKey())
	defer p.leaveHub(h)
	for range 200 {
		c := p.client()
		expect(t, c, bulkReply("k"), "SET", "k", "v")
		if err := c.SendCommand("WAIT", "3", "0"); err != nil {
			t.Fatal(err)
		}
		f.await(t, "WAIT", 1)
		f.seenSince()
		resets(c)
		until(t, "it to leave", func() bool { return p.Stats().Clients == 0 && p.Stats().PrivateBusy == 0 })
		seen := map[*batcher.Conn]bool{}
		h.spares.mu.Lock()
		for _, s := range h.spares.idle {
			if seen[s.conn] {
				t.Error("a connection is twice among the spares")
			}
			seen[s.conn] = true
		}
		h.spares.mu.Unlock()
		if t.Failed() {
			return
		}
	}
}

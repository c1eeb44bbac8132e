package reclaim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// pass lets a worker read and go through its streams once.
func pass1(c *testClient, name string, streams []string) (got string) {
	c.do(readArgs(name, streams)...)
	for _, s := range streams {
		got += c.do(claimArgs(s, name)...)
	}
	return got
}

// TestFleetSharesItsRounds: ten proxies ask little more than one.
func TestFleetSharesItsRounds(t *testing.T) {
	cost := func(engines int) (commands int) {
		inWorld(t, engines, nil, func(w *world) {
			names := w.streams(161)
			var clients []*testClient
			for i := range engines {
				c := w.client(i)
				pass1(c, fmt.Sprintf("w%d", i), names)
				clients = append(clients, c)
			}
			count := func() (n int) {
				w.srv.mu.Lock()
				defer w.srv.mu.Unlock()
				for name, k := range w.srv.counts {
					if name != "XREADGROUP" && name != "XADD" {
						n += k
					}
				}
				return n
			}
			time.Sleep(2 * testInterval) // the first round also asks for sizes
			before := count()
			for range 50 {
				time.Sleep(testInterval)
				for i, c := range clients {
					pass1(c, fmt.Sprintf("w%d", i), names)
				}
			}
			commands = count() - before
		})
		return commands
	}
	one, ten := cost(1), cost(10)
	t.Logf("one proxy: %d commands, ten: %d", one, ten)
	if float64(ten) > 1.2*float64(one) {
		t.Errorf("ten proxies send %d commands, one %d", ten, one)
	}
	// 50 intervals, up to a tenth shorter; 161 probes and the commands of the lease.
	if limit := 56 * (161 + 8); one > limit {
		t.Errorf("one proxy sends %d commands, more than %d", one, limit)
	}
}

// TestAnotherTakesOverWhenTheHolderDies: answers go on without a hole.
func TestAnotherTakesOverWhenTheHolderDies(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		names := w.streams(5)
		clients := []*testClient{w.client(0), w.client(1), w.client(2)}
		run := func(from, n int) {
			for range n {
				time.Sleep(testInterval / 10)
				for i, c := range clients[from:] {
					pass1(c, fmt.Sprintf("w%d", from+i), names)
				}
			}
		}
		run(0, 100)
		holder := -1
		for i, e := range w.engines {
			e.mu.Lock()
			if e.leases == 1 {
				holder = i
			}
			e.mu.Unlock()
		}
		if holder < 0 {
			w.t.Fatal("nobody holds the lease")
		}
		clients[0], clients[holder] = clients[holder], clients[0]
		w.engines[holder].Close() // as killed: no Drain
		before := w.forward.of("expired")
		run(1, 100)
		if n := w.forward.of("expired") - before; n != 0 {
			w.t.Errorf("%d commands forwarded for want of a result", n)
		}
		leases := 0
		for i, e := range w.engines {
			if i != holder {
				e.mu.Lock()
				leases += e.leases
				e.mu.Unlock()
			}
		}
		if leases != 1 {
			w.t.Errorf("%d leases held", leases)
		}
	})
}

// TestStaleHolderChangesNothing: a holder that was stopped past its lease neither
// overwrites its successor's result nor takes an old result for a good one.
func TestStaleHolderChangesNothing(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(2)
		pass1(w.client(0), "w", names)
		pass1(w.client(0), "w", names)
		e := w.engines[0]
		time.Sleep(2 * testInterval)
		s := e.stopRounds()
		t1, err := e.take(context.Background(), s)
		if err != nil || !t1.mine {
			w.t.Fatalf("%+v %v", t1, err)
		}
		time.Sleep(3 * testInterval)
		w.raw("SET", s.lease, `{"by":"other","n":99,"at":1}`)
		if ok, err := e.store(context.Background(), s, report{By: "proxy0"}, 0); ok || err != nil {
			w.t.Errorf("stored: %v %v", ok, err)
		}
		time.Sleep(2 * testInterval)
		if got := e.Streams()[0]; got.State != "unknown" || got.Why == "" {
			w.t.Errorf("the old result still counts: %+v", got)
		}
	})
}

// stopRounds lets no further round of the only sweep begin.
func (e *Engine) stopRounds() (s *sweep) {
	for range 1000 {
		e.mu.Lock()
		for _, s = range e.sweeps {
			if !s.running {
				e.agenda.set(s, time.Now().Add(time.Hour))
			}
		}
		running := s == nil || s.running // then it will set the next one's time
		e.mu.Unlock()
		if !running {
			return s
		}
		time.Sleep(10 * time.Millisecond)
	}
	panic("there is no sweep, or its round does not end")
}

// TestTwoUsersShareARound: one is asked for both, and each is told only of what it
// has proved for itself.
func TestTwoUsersShareARound(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(4)
		var clients []*testClient
		for _, user := range []string{"a", "b"} {
			c := newTestClient(w.t, w.engines[0], w.srv, Identity{User: User{Name: user}, Proto: 2})
			w.clients = append(w.clients, c)
			pass1(c, "w", names)
			pass1(c, "w", names)
			clients = append(clients, c)
		}
		time.Sleep(testInterval)
		before := w.srv.executed("XPENDING")
		for range 40 {
			time.Sleep(testInterval / 4)
			for _, c := range clients {
				pass1(c, "w", names)
			}
		}
		if n := w.srv.executed("XPENDING") - before; n > 12*4 {
			w.t.Errorf("%d probes of 4 streams in ten rounds", n)
		}
		if n := w.srv.keyCount(); n != 1 {
			w.t.Errorf("%d leases", n)
		}
		clients[0].s.Leave() // the other one asks from now on
		time.Sleep(5 * testInterval)
		before = w.forward.of("expired")
		pass1(clients[1], "w", names)
		if n := w.forward.of("expired") - before; n != 0 {
			w.t.Errorf("%d forwarded for want of a result", n)
		}
	})
}

// TestFollowersAskForTheTimeNowAndThen: a clock that is never asked again runs away.
func TestFollowersAskForTheTimeNowAndThen(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s")
		e := w.engines[0]
		s := e.stopRounds()
		w.raw("SET", s.lease, `{"by":"other"}`)
		for range 25 {
			e.runRound(context.Background(), s)
			e.stopRounds()
			pass1(c, "w", []string{"s"})
			time.Sleep(testInterval)
		}
		if n := w.srv.executed("TIME"); n < 3 || n > 8 {
			w.t.Errorf("asked for the time %d times in 25 rounds", n)
		}
		c.s.Leave()
	})
}

// TestGivenBackEntriesAreFoundByAll: their idle time exceeds their age, so that the
// ordinary probe does not see them.
func TestGivenBackEntriesAreFoundByAll(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		names := w.streams(2)
		a, b := w.client(0), w.client(1)
		pass1(a, "a", names)
		pass1(b, "b", names)
		time.Sleep(2 * testInterval)
		id := w.abandon(names[1])
		// Another client makes the entry reclaimable by hand, through this proxy.
		a.do("XCLAIM", names[1], "g", "dead", "0", id, "IDLE", "3600000", "JUSTID")
		var got string
		for range 25 {
			time.Sleep(testInterval / 10)
			if got = pass1(b, "b", names); strings.Contains(got, id) {
				break
			}
		}
		if !strings.Contains(got, id) {
			w.t.Error("not found within two rounds")
		}
	})
}

// TestEntriesFromTheFutureAreProbed: made by hand, or before the clock went back.
func TestEntriesFromTheFutureAreProbed(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(1)
		w.raw("XADD", names[0], "99999999999999-1", "k", "v")
		w.raw(readArgs("dead", names)...)
		c := w.client(0)
		deadline := time.Now().Add(testMinIdle + 3*testInterval)
		for !strings.Contains(pass1(c, "w", names), "99999999999999-1") {
			if time.Now().After(deadline) {
				w.t.Fatal("never found")
			}
			time.Sleep(time.Second)
		}
	})
}

// TestVeryManyPendingEntriesAreReadByPages: the rounds stay cheap, and what lies far
// behind is found.
func TestVeryManyPendingEntriesAreReadByPages(t *testing.T) {
	large := int64(0)
	inWorld(t, 1, func(c *Config) {
		c.Events.LargePEL = func(_, _ string, n int64, _ time.Duration) { large = max(large, n) }
	}, func(w *world) {
		names := w.streams(1)
		w.srv.mu.Lock()
		g := w.srv.streams[names[0]].groups["g"]
		s := w.srv.streams[names[0]]
		for i := range largePEL + 2000 {
			id := fakeID{uint64(i + 1), 0}
			s.ids = append(s.ids, id)
			g.pel[id] = &fakePending{owner: "busy", at: time.Now().Add(time.Hour), count: 1}
		}
		g.last = fakeID{largePEL + 2000, 0}
		g.pel[fakeID{4500, 0}].at = time.Now()
		w.srv.mu.Unlock()
		c := w.client(0)
		pass1(c, "w", names)
		time.Sleep(testInterval)
		var got string
		for range 12 + int(testMinIdle/testInterval) {
			time.Sleep(testInterval)
			if got = pass1(c, "w", names); strings.Contains(got, "4500-0") {
				break
			}
		}
		if !strings.Contains(got, "4500-0") {
			w.t.Errorf("never found: %q", got)
		}
		if large != largePEL+2000 {
			w.t.Errorf("reported %d", large)
		}
	})
}

// TestStaleEntryBehindFreshOnes: the server looks at COUNT times ten entries from
// the start, and clients always start at the beginning.
func TestStaleEntryBehindFreshOnes(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(1)
		c := w.client(0)
		for range 150 {
			w.raw("XADD", names[0], "*", "k", "v")
		}
		w.raw(readArgs("busy", names)...)
		id := w.abandon(names[0])
		stop := time.Now().Add(testMinIdle + 2*testInterval)
		for time.Now().Before(stop) {
			w.srv.mu.Lock()
			for _, p := range w.srv.streams[names[0]].groups["g"].pel {
				if p.owner == "busy" {
					p.at = time.Now()
				}
			}
			w.srv.mu.Unlock()
			if strings.Contains(pass1(c, "w", names), id) {
				return
			}
			time.Sleep(time.Second)
		}
		w.t.Error("never delivered")
	})
}

func TestWithoutALeaseEverythingIsForwarded(t *testing.T) {
	rounds := &tally{}
	inWorld(t, 1, func(c *Config) { c.Events.Round = func(r string) { rounds.add(r, 1) } }, func(w *world) {
		w.srv.denied["EVAL"] = true
		names := w.streams(3)
		c := w.client(0)
		for range 60 {
			pass1(c, "w", names)
			time.Sleep(time.Second)
		}
		before := w.srv.executed("XAUTOCLAIM")
		pass1(c, "w", names)
		if n := w.srv.executed("XAUTOCLAIM") - before; n != 3 {
			w.t.Errorf("%d of 3 forwarded", n)
		}
		if rounds.of("denied") == 0 {
			w.t.Error("not counted")
		}
		w.srv.mu.Lock()
		w.srv.denied["EVAL"] = false // the operator has repaired it
		w.srv.mu.Unlock()
		time.Sleep(2 * testInterval)
		before = w.srv.executed("XAUTOCLAIM")
		pass1(c, "w", names)
		if n := w.srv.executed("XAUTOCLAIM") - before; n != 0 {
			w.t.Errorf("%d forwarded afterwards", n)
		}
	})
}

func TestNobodyReadsNobodyAsks(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(3)
		c := w.client(0)
		pass1(c, "w", names)
		time.Sleep(2 * testInterval)
		if w.srv.keyCount() != 1 {
			w.t.Fatal("no lease")
		}
		c.s.Leave()
		time.Sleep(2 * testInterval)
		if n := w.srv.keyCount(); n != 0 {
			w.t.Errorf("%d leases kept", n)
		}
		before := w.srv.executed("XPENDING")
		time.Sleep(4 * testInterval)
		if n := w.srv.executed("XPENDING") - before; n != 0 {
			w.t.Errorf("%d probes", n)
		}
		if n := len(w.engines[0].Streams()); n != 3 {
			w.t.Errorf("%d profiles remembered", n)
		}
		time.Sleep(2*testMinIdle + 2*testInterval)
		if n := len(w.engines[0].Streams()); n != 0 {
			w.t.Errorf("%d profiles left", n)
		}
		e := w.engines[0]
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.consumers)+len(e.sweeps)+len(e.targets)+e.profiles != 0 || e.Bytes() != 0 {
			w.t.Errorf("left: %d consumers, %d sweeps, %d targets, %d profiles, %d bytes", len(e.consumers), len(e.sweeps), len(e.targets), e.profiles, e.Bytes())
		}
	})
}

// TestServerChanged: nothing of the old server counts, and the streams of those who
// are here are learned without waiting for them to ask.
func TestServerChanged(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(3)
		c := w.client(0)
		pass1(c, "w", names)
		pass1(c, "w", names)
		e := w.engines[0]
		w.srv.mu.Lock()
		w.srv.offset = 3 * time.Hour
		w.srv.keys = make(map[string]fakeKey)
		w.srv.mu.Unlock()
		e.ServerChanged()
		for _, s := range e.Streams() {
			if s.State != "unknown" {
				w.t.Errorf("%+v", s)
			}
		}
		time.Sleep(100 * time.Millisecond)
		for _, s := range e.Streams() {
			if s.State != "cold" {
				w.t.Errorf("%+v", s)
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if ahead := time.Until(e.clock.server(time.Now())); ahead < 3*time.Hour-time.Minute {
			w.t.Errorf("the old clock: %v", ahead)
		}
	})
}

func TestReportsOfAnotherMindAreNoResult(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(2)
		c := w.client(0)
		pass1(c, "w", names)
		e := w.engines[0]
		e.mu.Lock()
		lease := ""
		for _, s := range e.sweeps {
			lease = s.lease
		}
		e.mu.Unlock()
		for _, v := range []string{"", "nonsense", `{"by":"x"}`, `{"by":"x","at":5,"hot":[{"s":77,"id":"1-1"}],"watch":[[-1,0],[9,0]]}`} {
			w.raw("SET", lease, v)
			time.Sleep(2 * testInterval)
			pass1(c, "w", names)
		}
		time.Sleep(5 * testInterval)
		before := w.forward.of("expired")
		pass1(c, "w", names)
		if n := w.forward.of("expired") - before; n != 2 {
			w.t.Errorf("%d of 2 forwarded", n)
		}
	})
}

// TestLongNamesDoNotSpoilAReport: the name of a consumer may have any length.
func TestLongNamesDoNotSpoilAReport(t *testing.T) {
	rounds := &tally{}
	inWorld(t, 1, func(c *Config) { c.Events.Round = func(r string) { rounds.add(r, 1) } }, func(w *world) {
		c := w.known("a", "b")
		w.raw("XADD", "a", "*", "k", "v")
		w.raw(readArgs(strings.Repeat("x", maxReport), []string{"a"})...)
		time.Sleep(testMinIdle)
		for range 8 {
			time.Sleep(testInterval)
			c.do(claimArgs("b", "w")...)
		}
		if n := rounds.of("failed"); n > 0 {
			w.t.Errorf("%d rounds failed", n)
		}
		if got := entriesOf(c.do(claimArgs("a", "w")...)); len(got) != 1 || c.last() != Defer {
			w.t.Errorf("%v: %v", c.last(), got)
		}
	})
}

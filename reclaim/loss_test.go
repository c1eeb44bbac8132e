package reclaim

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestLossIsHeardOfAtOnce: what a command ends is not answered for from here any more, not even
// directly behind it in a pipeline.
func TestLossIsHeardOfAtOnce(t *testing.T) {
	for _, args := range [][]string{
		{"XGROUP", "DESTROY", "a", "g"}, {"DEL", "x", "a"}, {"UNLINK", "a"}, {"RENAME", "a", "x"},
		{"FLUSHALL"}, {"FLUSHDB", "ASYNC"},
	} {
		t.Run(args[0], func(t *testing.T) {
			inWorld(t, 1, nil, func(w *world) {
				c := w.known("a", "b")
				c.s.Command(scanCommand([]byte(commandOf(args...))))
				if v := c.s.Command(scanCommand([]byte(commandOf(claimArgs("a", "w")...)))); v.Action != Forward {
					w.t.Errorf("judged as %v before the loss is done", v.Action)
				}
				c.do(args...)
				if r := c.do(claimArgs("a", "w")...); !strings.HasPrefix(r, "-NOGROUP") {
					w.t.Errorf("got %q", r)
				}
				flushed := strings.HasPrefix(args[0], "FLUSH")
				before := w.srv.executed("XAUTOCLAIM")
				r := c.do(claimArgs("b", "w")...)
				if asked := w.srv.executed("XAUTOCLAIM") > before; asked != flushed || strings.HasPrefix(r, "-") != flushed {
					w.t.Errorf("the other stream: asked %v, got %q", asked, r)
				}
			})
		})
	}
}

// TestLossInATransaction: the same within MULTI and EXEC, where an entry's idle time set by hand is
// noticed too.
func TestLossInATransaction(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a")
		c.block([]string{"MULTI"}, []string{"XCLAIM", "a", "g", "x", "0", "1-1", "IDLE", "5"}, []string{"DEL", "a"}, []string{"EXEC"})
		if r := c.do(claimArgs("a", "w")...); !strings.HasPrefix(r, "-NOGROUP") {
			w.t.Errorf("got %q", r)
		}
		time.Sleep(time.Second)
		if n := w.srv.executed("RPUSH"); n != 1 {
			w.t.Errorf("%d hints", n)
		}
	})
}

// TestLearningBehindALoss: what a learning has found before its stream was ended does not count.
func TestLearningBehindALoss(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a")
		v := c.s.Command(scanCommand([]byte(commandOf("DEL", "a"))))
		e := w.engines[0]
		e.mu.Lock()
		e.profileFor(targetKey{0, User{}, "a", "g"}, testMinIdle, []byte(emptySeven))
		e.mu.Unlock()
		v.Watch.Seen([]byte(":1\r\n"))
		if list := e.Streams(); len(list) != 0 {
			w.t.Errorf("%+v", list)
		}
	})
}

// TestConsumerDeletedWhileHeld: entries that were claimed ahead for a consumer that never asked
// for them do not go down with it.
func TestConsumerDeletedWhileHeld(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		other := w.client(0)
		if r := other.do("XGROUP", "DELCONSUMER", "b", "g", "w"); r != ":0\r\n" {
			w.t.Errorf("%q entries went with it", r)
		}
		if p := w.pending("b"); len(p) != 1 || p[0].owner != "dead" || p[0].count != 1 {
			w.t.Errorf("%+v", p)
		}
		if r := c.do(claimArgs("b", "w")...); !slices.Equal(entriesOf(r), []string{id}) {
			w.t.Errorf("%q", r)
		}
	})
}

// Whose entries they were takes them along when it is deleted, as it would without us.
func TestPreviousOwnerDeletedWhileHeld(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		if r := w.client(0).do("XGROUP", "DELCONSUMER", "b", "g", "dead"); r != ":1\r\n" {
			w.t.Errorf("%q entries went with it", r)
		}
		if p := w.pending("b"); len(p) != 0 {
			w.t.Errorf("%+v", p)
		}
		if r := c.do(claimArgs("b", "w")...); strings.Contains(r, id) {
			w.t.Errorf("handed out: %q", r)
		}
	})
}

// TestOtherConsumersLossIsNoMatter: what is held for one is not given back for another's sake.
func TestOtherConsumersLossIsNoMatter(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		w.client(0).do("XGROUP", "DELCONSUMER", "b", "g", "x")
		if n := w.engines[0].heldNow(); n != 1 {
			w.t.Errorf("%d held", n)
		}
	})
}

// TestStreamEndedWhileHeld: what is held of it is nobody's any more.
func TestStreamEndedWhileHeld(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		w.client(0).do("DEL", "b")
		if r := c.do(claimArgs("b", "w")...); !strings.HasPrefix(r, "-NOGROUP") {
			w.t.Errorf("%q", r)
		}
	})
}

// TestHeldAtAnotherServer: after a failover, nothing is handed out that was claimed before it; the
// server that answers now may have given it to somebody else.
func TestHeldAtAnotherServer(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		e := w.engines[0]
		w.srv.mu.Lock() // the claim did not get there
		p := w.srv.streams["b"].groups["g"].pel[parseFakeID(id)]
		p.owner, p.count = "elsewhere", 2
		w.srv.mu.Unlock()
		e.ServerChanged()
		if n := e.heldNow(); n != 0 {
			w.t.Errorf("%d held", n)
		}
		time.Sleep(100 * time.Millisecond)
		if p := w.pending("b"); p[0].owner != "elsewhere" || p[0].count != 2 {
			w.t.Errorf("%+v", p)
		}
		if r := c.do(claimArgs("b", "w")...); len(entriesOf(r)) > 0 {
			w.t.Errorf("%q", r)
		}
	})
}

// TestClaimRefusedForNow: a server that cannot serve for a moment does not forbid anything.
func TestClaimRefusedForNow(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a")
		id := w.abandon("a")
		time.Sleep(testMinIdle + 2*testInterval)
		refuse := func(text string) {
			w.srv.mu.Lock()
			defer w.srv.mu.Unlock()
			w.srv.refused = map[string]string{}
			if text != "" {
				w.srv.refused["XAUTOCLAIM"] = text
			}
		}
		for _, text := range []string{"-READONLY You can't write\r\n", "-LOADING Redis is loading\r\n"} {
			refuse(text)
			if r := c.do(claimArgs("a", "w")...); r != text {
				w.t.Errorf("got %q", r)
			}
		}
		refuse("")
		if r := c.do(claimArgs("a", "w")...); !slices.Equal(entriesOf(r), []string{id}) || c.last() == Forward {
			w.t.Errorf("%v, %q", c.last(), r)
		}
		if n := w.forward.of("denied"); n != 0 {
			w.t.Errorf("%d were forwarded as denied", n)
		}
	})
}

// TestLargeCountsAreServedByPages: no claim brings more into memory than there is a bound for.
func TestLargeCountsAreServedByPages(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a")
		const all = fewEntries + claimMost + 7
		for range all {
			w.raw("XADD", "a", "*", "k", "v")
		}
		w.raw(readArgs("dead", []string{"a"})...)
		time.Sleep(testMinIdle + 2*testInterval)
		start, got := "0-0", 0
		for _, want := range []int{fewEntries, claimMost, 7} {
			r := c.do("XAUTOCLAIM", "a", "g", "w", testMinIdleMS, start, "COUNT", "1000000")
			if n := len(entriesOf(r)); n != want {
				w.t.Errorf("%d entries, not %d", n, want)
			}
			got += len(entriesOf(r))
			parts, _ := elements([]byte(r))
			start = textOf(parts[0])
		}
		if got != all || start != "0-0" || w.entries.of("delivered") != got {
			w.t.Errorf("%d entries, %d from here, then %s", got, w.entries.of("delivered"), start)
		}
	})
}

// TestServersClockIsSet: forward or back by hours, a follower's results count for as long as ever,
// and no longer.
func TestServersClockIsSet(t *testing.T) {
	for name, step := range map[string]time.Duration{"forward": 5 * time.Hour, "back": -5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, nil, func(w *world) {
				var clients []*testClient
				for i := range 2 {
					c := w.client(i)
					pass1(c, "w"+string(rune('0'+i)), w.streams(1))
					clients = append(clients, c)
				}
				turn := func(n int) {
					for range n {
						time.Sleep(testInterval)
						for i, c := range clients {
							pass1(c, "w"+string(rune('0'+i)), []string{"s00"})
						}
					}
				}
				turn(4)
				w.srv.mu.Lock()
				w.srv.offset = step
				w.srv.mu.Unlock()
				turn(4)
				before := w.forward.of("expired")
				turn(8)
				if n := w.forward.of("expired") - before; n > 0 {
					w.t.Errorf("%d were forwarded for want of a result", n)
				}
				for _, e := range w.engines {
					for _, s := range e.Streams() {
						if s.Age < 0 || s.Age > 3*testInterval {
							w.t.Errorf("a result of age %v", s.Age)
						}
					}
				}
			})
		})
	}
}

// TestLeaseTakenUnawares: the reply to the taking is lost, and then the proxy ends: the lease is
// given up all the same.
func TestLeaseTakenUnawares(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		w.known("a")
		e := w.engines[0]
		w.srv.setFault(func(control bool, first string) fate {
			if control {
				return lost
			}
			return fine
		})
		time.Sleep(2 * testInterval)
		if n := w.srv.keyCount(); n != 1 {
			w.t.Fatalf("%d leases", n)
		}
		w.srv.setFault(nil)
		e.Drain(context.Background())
		if n := w.srv.keyCount(); n != 0 {
			w.t.Errorf("%d leases", n)
		}
	})
}

// TestLeaseTakenWhileDraining: a round was under way.
func TestLeaseTakenWhileDraining(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		w.known("a")
		e := w.engines[0]
		s := e.stopRounds()
		go e.runRound(context.Background(), s)
		time.Sleep(time.Millisecond)
		e.Drain(context.Background())
		time.Sleep(time.Second)
		if n := w.srv.keyCount(); n != 0 {
			w.t.Errorf("%d leases", n)
		}
	})
}

// SWAPDB ends what is known of its two databases, and of no other.
func TestSwapEndsTwoDatabases(t *testing.T) {
	for line, want := range map[string][3]bool{"SWAPDB 0 1": {true, true, false}, "SWAPDB 2 1": {false, true, true}, "SWAPDB x 1": {true, true, true}} {
		l := swapping(scanCommand([]byte(commandOf(strings.Fields(line)...))))
		for db := range 3 {
			if got := l.of(targetKey{db: db, stream: "s", group: "g"}); got != want[db] {
				t.Errorf("%s: database %d: %v", line, db, got)
			}
		}
	}
}

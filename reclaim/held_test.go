package reclaim

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/resp"
)

func scanAll(list [][]string) (cmds []resp.Command) {
	for _, args := range list {
		cmds = append(cmds, scanCommand([]byte(commandOf(args...))))
	}
	return cmds
}

// holding is a world in which an entry of the second stream is held for w.
func holding(t *testing.T, test func(w *world, c *testClient, id string)) {
	t.Helper()
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a", "b")
		w.abandon("a")
		id := w.abandon("b")
		time.Sleep(testMinIdle + 2*testInterval)
		c.do(claimArgs("a", "w")...)
		if w.engines[0].heldNow() != 1 {
			w.t.Fatal("nothing is held")
		}
		test(w, c, id)
	})
}

func (w *world) pending(stream string) []pendingEntry {
	list, _ := parsePending([]byte(w.raw("XPENDING", stream, "g", "-", "+", "100")))
	return list
}

func TestHeldIsHandedOutOnce(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		r := c.block(formOf("b", "g", "w", testMinIdleMS, "10", "tok")...)
		if !strings.Contains(r, id) || c.last() != Answer {
			w.t.Errorf("%v %q", c.last(), r)
		}
		if r := c.do(claimArgs("b", "w")...); r != emptySeven {
			w.t.Errorf("again: %q", r)
		}
		if n := w.engines[0].heldNow(); n != 0 {
			w.t.Errorf("%d held", n)
		}
	})
}

// TestHeldIsHandedOutFresh: what is handed out has been claimed lately, compared with the time that
// its consumer has for it. What was held for longer is claimed once more by its id, without another
// delivery being counted, and what was too long on its way is not held.
func TestHeldIsHandedOutFresh(t *testing.T) {
	const minIdle = 2 * time.Second
	for _, tt := range []struct {
		name          string
		trip, pause   time.Duration
		held          int
		renewed, anew int // commands
		stolen        bool
	}{
		{"in time", 0, 190 * time.Millisecond, 1, 0, 0, false},
		{"late", 0, 900 * time.Millisecond, 1, 1, 0, false},
		{"somebody else's", 0, 900 * time.Millisecond, 1, 1, 0, true},
		{"long on its way", time.Second, 3 * time.Second, 0, 0, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, 1, nil, func(w *world) {
				for _, s := range []string{"a", "b"} {
					w.raw("XGROUP", "CREATE", s, "g", "$", "MKSTREAM")
				}
				c := w.client(0)
				c.do(readArgs("w", []string{"a", "b"})...)
				claim := func(s string) string { return c.do("XAUTOCLAIM", s, "g", "w", millis(minIdle), "0-0", "COUNT", "10") }
				claim("a")
				time.Sleep(time.Second)
				w.abandon("a")
				id := w.abandon("b")
				time.Sleep(3 * minIdle)
				w.srv.latency.Store(int64(tt.trip))
				claim("a")
				if n := w.engines[0].heldNow(); n != tt.held {
					w.t.Errorf("%d held, want %d", n, tt.held)
				}
				time.Sleep(tt.pause)
				if tt.stolen {
					w.raw("XCLAIM", "b", "g", "thief", "0", id)
				}
				renewed, anew := w.srv.executed("XCLAIM"), w.srv.executed("XAUTOCLAIM")
				if r := claim("b"); strings.Contains(r, id) == tt.stolen {
					w.t.Errorf("answered %q", r)
				}
				renewed, anew = w.srv.executed("XCLAIM")-renewed, w.srv.executed("XAUTOCLAIM")-anew
				if renewed != tt.renewed || anew != tt.anew && !tt.stolen {
					w.t.Errorf("claimed again by id %d times, anew %d times; want %d and %d", renewed, anew, tt.renewed, tt.anew)
				}
				p := w.pending("b")
				if owner := map[bool]string{false: "w", true: "thief"}[tt.stolen]; len(p) != 1 || p[0].owner != owner {
					w.t.Errorf("pending %+v", p)
				}
				if !tt.stolen && (p[0].count != 2 || p[0].idle > tt.trip+minIdle/freshShare) {
					w.t.Errorf("pending %+v: it has just been handed out", p)
				}
			})
		})
	}
}

func TestAckedWhileHeldIsNotHandedOut(t *testing.T) {
	for _, name := range []string{"XACK", "XDEL"} {
		t.Run(name, func(t *testing.T) {
			holding(t, func(w *world, c *testClient, id string) {
				other := w.client(0)
				args := []string{name, "b", "g", id}
				if name == "XDEL" {
					args = []string{name, "b", id}
				}
				other.do(args...)
				if r := c.do(claimArgs("b", "w")...); len(entriesOf(r)) > 0 {
					w.t.Errorf("handed out: %q", r)
				}
			})
		})
	}
}

// TestAckThatFailsChangesNothing: what was not acked is where it was before our claim.
func TestAckThatFailsChangesNothing(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		w.srv.mu.Lock()
		w.srv.denied["XACK"] = true
		w.srv.mu.Unlock()
		w.client(0).do("XACK", "b", "g", id)
		if p := w.pending("b"); p[0].owner != "dead" || p[0].count != 1 || p[0].idle < testMinIdle {
			w.t.Errorf("%+v", p)
		}
		if r := c.do(claimArgs("b", "w")...); !slices.Equal(entriesOf(r), []string{id}) {
			w.t.Errorf("%q", r)
		}
	})
}

// TestTwoBatchesForOneConsumer: two connections of one consumer are served at the same
// time, and both claims bring something of the same stream. One is held, the other goes
// back at once.
func TestTwoBatchesForOneConsumer(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a", "b")
		other := w.client(0)
		w.abandon("a")
		for range 20 {
			w.abandon("b")
		}
		time.Sleep(testMinIdle + 2*testInterval)
		first := c.s.Command(scanCommand([]byte(commandOf(claimArgs("a", "w")...))))
		second := other.s.Command(scanCommand([]byte(commandOf(claimArgs("a", "w")...))))
		both := make(chan Verdict)
		for _, v := range []Verdict{first, second} {
			go func() { both <- v.Task.Run(context.Background()) }()
		}
		for range 2 {
			if v := <-both; v.Handout != nil {
				v.Handout.Written()
			}
		}
		time.Sleep(100 * time.Millisecond)
		ours := 0
		for _, p := range w.pending("b") {
			if p.owner == "w" {
				ours++
			}
		}
		if n := w.engines[0].heldNow(); n != 10 || ours != 10 {
			w.t.Errorf("%d held, %d pending for their consumer", n, ours)
		}
		c.do("XREADGROUP", "GROUP", "g", "w", "STREAMS", "b", "0") // sees nothing held
		for _, p := range w.pending("b") {
			if p.owner != "dead" || p.count != 1 {
				w.t.Errorf("%+v", p)
			}
		}
	})
}

// TestAckedInAnotherGroup: groups have their own pending entries.
func TestAckedInAnotherGroup(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		other := w.client(0)
		other.do("XACK", "b", "other", id)
		other.do("XCLAIM", "b", "other", "x", "0", id)
		if r := c.do(claimArgs("b", "w")...); !strings.Contains(r, id) {
			w.t.Errorf("not handed out: %q", r)
		}
	})
}

// TestMovedWhileHeldGoesBackFirst: the client that moves it sees what it would see
// without us.
func TestMovedWhileHeldGoesBackFirst(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		other := w.client(0)
		r := other.do("XCLAIM", "b", "g", "x", testMinIdleMS, id)
		if !strings.Contains(r, id) {
			w.t.Errorf("XCLAIM: %q", r)
		}
		if p := w.pending("b"); p[0].owner != "x" || p[0].count != 2 {
			w.t.Errorf("%+v", p)
		}
		if r := c.do(claimArgs("b", "w")...); strings.Contains(r, id) {
			w.t.Errorf("handed out: %q", r)
		}
	})
}

// TestServerFindsWhatIsHeld: commands that are left to the server see the entries where they would
// be without us.
func TestServerFindsWhatIsHeld(t *testing.T) {
	short := []string{"XAUTOCLAIM", "b", "g", "w", "1000", "0-0"}
	for name, commands := range map[string][][]string{
		"another form":      {{"XAUTOCLAIM", "b", "g", "w", testMinIdleMS, "0-0", "COUNT", "010"}},
		"a short min-idle":  {short},
		"in a transaction":  {{"MULTI"}, short, {"EXEC"}},
		"listed":            {{"XPENDING", "b", "g", "-", "+", "10"}},
		"listed in a block": {{"MULTI"}, {"XPENDING", "b", "g", "-", "+", "10"}, {"EXEC"}},
	} {
		t.Run(name, func(t *testing.T) {
			holding(t, func(w *world, c *testClient, id string) {
				for _, other := range []string{"a", "b"} { // not of another stream, nor of another group
					c.do("XPENDING", other, map[string]string{"a": "g", "b": "h"}[other], "-", "+", "1")
				}
				if n := w.engines[0].heldNow(); n != 1 {
					w.t.Fatalf("%d held", n)
				}
				var r string
				if len(commands) == 1 {
					r = c.do(commands[0]...)
				} else {
					r = c.block(commands...)
				}
				if strings.Contains(name, "listed") {
					if !strings.Contains(r, "dead") {
						w.t.Errorf("%q", r)
					}
				} else if !strings.Contains(r, id) {
					w.t.Errorf("%q", r)
				}
			})
		})
	}
}

func TestHistoryReadSeesNothingHeld(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		c.do("XREADGROUP", "GROUP", "g", "w", "STREAMS", "b", "0")
		if p := w.pending("b"); p[0].owner != "dead" || p[0].count != 1 {
			w.t.Errorf("%+v", p)
		}
	})
}

// Whose entry it was finds it in its history, over a connection that has not asked for anything;
// a third one's history is no matter.
func TestHistoryReadOfThePreviousOwner(t *testing.T) {
	holding(t, func(w *world, _ *testClient, _ string) {
		back := w.client(0)
		back.do("XREADGROUP", "GROUP", "g", "x", "STREAMS", "b", "0")
		if n := w.engines[0].heldNow(); n != 1 {
			w.t.Fatalf("%d held", n)
		}
		back.do("XREADGROUP", "GROUP", "g", "dead", "STREAMS", "a", "b", "0", "0")
		if p := w.pending("b"); p[0].owner != "dead" || p[0].count != 1 {
			w.t.Errorf("%+v", p)
		}
	})
}

// What takes a stream elsewhere, or shows whose its entries are, finds them where they were.
func TestHeldGoesBackBeforeTheStreamIsTaken(t *testing.T) {
	for line, taken := range map[string]bool{
		"COPY b c": true, "MOVE b 1": true, "DUMP b": true, "MIGRATE 127.0.0.1 1 b 0 100": true,
		"MIGRATE 127.0.0.1 1 '' 0 100 KEYS a b": true, "COPY c d": false, "MOVE a 1": false, "DUMP a": false,
		"XINFO CONSUMERS b g": true, "XINFO STREAM b FULL": true,
		"XINFO CONSUMERS b h": false, "XINFO GROUPS b": false, "XINFO STREAM b": false, "XINFO HELP": false, "DUMP": false, "XINFO": false,
	} {
		holding(t, func(w *world, _ *testClient, _ string) {
			cmd := scanCommand([]byte(commandOf(strings.Fields(line)...)))
			v := w.client(0).s.Command(cmd)
			if v.Action == Defer {
				v.Task.Run(context.Background())
			}
			if p := w.pending("b"); (p[0].owner == "dead") != taken || (w.engines[0].heldNow() == 0) != taken {
				w.t.Errorf("%s: pending %+v", line, p)
			}
		})
	}
}

func TestMovesInsideATransactionCountToo(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		other := w.client(0)
		other.block([]string{"MULTI"}, []string{"XACK", "b", "g", id}, []string{"EXEC"})
		if n := w.engines[0].heldNow(); n != 0 {
			w.t.Errorf("%d held", n)
		}
	})
}

// TestHeldForAnotherCountGoesBack: never more than the client asks for.
func TestHeldForAnotherCountGoesBack(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a", "b")
		w.abandon("a")
		for range 3 {
			w.abandon("b")
		}
		time.Sleep(testMinIdle + 2*testInterval)
		c.do(claimArgs("a", "w")...)
		r := c.do("XAUTOCLAIM", "b", "g", "w", testMinIdleMS, "0-0", "COUNT", "2")
		if n := len(entriesOf(r)); n != 2 {
			w.t.Errorf("%d entries for a COUNT of 2", n)
		}
		counts := ""
		for _, p := range w.pending("b") {
			counts += p.owner + " "
		}
		if counts != "w w dead " {
			w.t.Errorf("pending for %s", counts)
		}
	})
}

// TestCapMeansForTheCallerOnly: at the bound nothing is claimed ahead.
func TestCapMeansForTheCallerOnly(t *testing.T) {
	for what, change := range map[string]func(*Config){
		"entries": func(c *Config) { c.MaxHeldEntries = 0 },
		"bytes":   func(c *Config) { c.MaxHeldBytes = 0 },
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, 1, change, func(w *world) {
				c := w.known("a", "b")
				w.abandon("a")
				w.abandon("b")
				time.Sleep(testMinIdle + 2*testInterval)
				if r := c.do(claimArgs("a", "w")...); len(entriesOf(r)) != 1 {
					w.t.Errorf("%q", r)
				}
				if w.pending("b")[0].owner != "dead" {
					w.t.Error("claimed ahead")
				}
				if r := c.do(claimArgs("b", "w")...); len(entriesOf(r)) != 1 {
					w.t.Errorf("%q", r)
				}
			})
		})
	}
}

// TestDroppedHandoutGoesBack: the client left before a byte was written.
func TestDroppedHandoutGoesBack(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		c := w.known("a")
		other := w.client(1)
		pass1(other, "other", []string{"a"})
		id := w.abandon("a")
		time.Sleep(testMinIdle + 2*testInterval)
		c.gone = func() bool { return true }
		if _, err := c.try(claimArgs("a", "w")...); err != errGone {
			w.t.Fatal(err)
		}
		c.s.Leave()
		time.Sleep(100 * time.Millisecond)
		if p := w.pending("a"); p[0].owner != "dead" || p[0].count != 1 || p[0].idle < testMinIdle {
			w.t.Errorf("%+v", p)
		}
		if r := other.do(claimArgs("a", "other")...); len(entriesOf(r)) != 1 || entriesOf(r)[0] != id {
			w.t.Errorf("at once: %q", r)
		}
	})
}

// TestFailedClaim: nobody is told a lie when it is not known what was claimed.
func TestFailedClaim(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a")
		w.abandon("a")
		time.Sleep(testMinIdle + 2*testInterval)
		w.srv.setFault(func(control bool, first string) fate {
			if first == "MULTI" {
				return lost
			}
			return fine
		})
		if _, err := c.try(claimArgs("a", "w")...); err == nil {
			w.t.Error("answered")
		}
		w.srv.setFault(func(control bool, first string) fate {
			if first == "MULTI" {
				return unsent
			}
			return fine
		})
		if _, err := c.try(claimArgs("a", "w")...); err != nil {
			w.t.Errorf("not forwarded: %v", err)
		}
	})
}

// TestMultiDenied: what was meant to be queued is executed at once, and still
// reaches the client.
func TestMultiDenied(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a", "b")
		w.abandon("a")
		w.abandon("b")
		time.Sleep(testMinIdle + 2*testInterval)
		w.srv.mu.Lock()
		w.srv.denied["MULTI"] = true
		w.srv.mu.Unlock()
		for _, s := range []string{"a", "b"} {
			if r := c.do(claimArgs(s, "w")...); len(entriesOf(r)) != 1 {
				w.t.Errorf("%s: %q", s, r)
			}
		}
	})
}

// TestClaimedWithoutMinIdleWhileHeld: an XAUTOCLAIM that takes whatever there is takes it from where
// it was before our claim, and the consumer for which it was held does not get it too.
func TestClaimedWithoutMinIdleWhileHeld(t *testing.T) {
	claim := []string{"XAUTOCLAIM", "b", "g", "other", "0", "0"}
	for name, list := range map[string][][]string{
		"plain":       {claim},
		"form":        {append(slices.Clone(claim), "JUSTID")},
		"transaction": {{"MULTI"}, claim, {"EXEC"}},
	} {
		t.Run(name, func(t *testing.T) {
			holding(t, func(w *world, c *testClient, id string) {
				other := w.client(0)
				if len(list) > 1 {
					other.block(list...)
				} else if r := other.do(list[0]...); !strings.Contains(r, id) {
					w.t.Errorf("the other one got %q", r)
				}
				if r := c.do(claimArgs("b", "w")...); strings.Contains(r, id) {
					w.t.Errorf("handed out to both: %q", r)
				}
				if p := w.pending("b"); len(p) != 1 || p[0].owner != "other" {
					w.t.Errorf("pending %+v", p)
				}
			})
		})
	}
}

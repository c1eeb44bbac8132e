package reclaim

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// unseen sends a command past the sessions, as a client's own connection does.
func (w *world) unseen(args ...string) string {
	if task := w.engines[0].Unseen(); task != nil {
		if v := task.Run(context.Background()); v.Action != Forward {
			w.t.Errorf("the verdict is %v", v.Action)
		}
	}
	return w.raw(args...)
}

// What is held goes back before a command that nobody has looked at: it finds the entry where it
// was, and whose it was.
func TestHeldGoesBackBeforeTheUnseen(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		if r := w.unseen("XPENDING", "b", "g", "-", "+", "9"); !strings.Contains(r, "$4\r\ndead\r\n") {
			w.t.Errorf("pending: %q", r)
		}
		w.unseen("XACK", "b", "g", id)
		if r := c.do(claimArgs("b", "w")...); strings.Contains(r, id) {
			w.t.Errorf("handed out: %q", r)
		}
		if w.engines[0].Unseen() != nil {
			w.t.Error("there is something to give back")
		}
	})
}

// A consumer that is deleted unseen takes nothing with it that it was never given.
func TestDeletedUnseenTakesNothingAlong(t *testing.T) {
	holding(t, func(w *world, _ *testClient, _ string) {
		if r := w.unseen("XGROUP", "DELCONSUMER", "b", "g", "w"); r != ":0\r\n" {
			w.t.Errorf("deleted: %q", r)
		}
		if p := w.pending("b"); len(p) != 1 || p[0].owner != "dead" || p[0].count != 1 {
			w.t.Errorf("pending %+v", p)
		}
	})
}

// What is claimed ahead while such a command goes by is not held.
func TestUnseenWhileAClaimIsUnderWay(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a", "b")
		w.abandon("a")
		id := w.abandon("b")
		time.Sleep(testMinIdle + 2*testInterval)
		claimed := make(chan string)
		go func() { claimed <- c.do(claimArgs("a", "w")...) }()
		time.Sleep(6 * time.Millisecond) // the server has got it, and its reply is under way
		w.unseen("XACK", "b", "g", id)
		if r := <-claimed; len(entriesOf(r)) != 1 {
			w.t.Errorf("the claim brought %q", r)
		}
		if n := w.engines[0].heldNow(); n != 0 {
			w.t.Errorf("%d held", n)
		}
		if r := c.do(claimArgs("b", "w")...); len(entriesOf(r)) > 0 {
			w.t.Errorf("handed out: %q", r)
		}
	})
}

// A batch that came to be held at the very moment is not handed out.
func TestOutdatedIsNotHandedOut(t *testing.T) {
	holding(t, func(w *world, c *testClient, id string) {
		w.engines[0].fence.passed.Add(1)
		w.raw("XACK", "b", "g", id)
		if r := c.do(claimArgs("b", "w")...); strings.Contains(r, id) {
			w.t.Errorf("handed out: %q", r)
		}
	})
}

// Nothing is claimed ahead for as long as such a command may be on its way; those who ask get theirs.
func TestNothingIsClaimedAheadBehindTheUnseen(t *testing.T) {
	for _, tt := range []struct {
		pause time.Duration
		held  int64
	}{{0, 0}, {holdTime, 0}, {holdTime + time.Millisecond, 1}} {
		inWorld(t, 1, nil, func(w *world) {
			c := w.known("a", "b")
			ids := []string{w.abandon("a"), w.abandon("b")}
			time.Sleep(testMinIdle + 2*testInterval)
			w.engines[0].Unseen()
			time.Sleep(tt.pause)
			got := entriesOf(c.do(claimArgs("a", "w")...))
			if n := w.engines[0].holding.Load(); n != tt.held {
				w.t.Errorf("after %v: %d batches held, want %d", tt.pause, n, tt.held)
			}
			if got = append(got, entriesOf(c.do(claimArgs("b", "w")...))...); !slices.Equal(got, ids) {
				w.t.Errorf("after %v: got %v, want %v", tt.pause, got, ids)
			}
		})
	}
}

// What a proxy without reclaim's powers holds is nothing.
func TestUnseenWhileObserving(t *testing.T) {
	inWorld(t, 1, func(c *Config) { c.Mode = Observe }, func(w *world) {
		if w.engines[0].Unseen() != nil || w.engines[0].fence.passed.Load() != 0 {
			w.t.Error("it counts")
		}
	})
}

func TestMeddles(t *testing.T) {
	for line, want := range map[string]bool{
		"XACK s g 1-1": true, "xautoclaim s g c 0 0": true, "XGROUP DELCONSUMER s g c": true, "DEL s": true, "SWAPDB 0 1": true,
		"XTRIM s MAXLEN 0": true, "XPENDING s g": true, "EVAL x 0": true, "FCALL f 0": true, "EVALSHA abc 1 k t": true,
		"EVALSHA c3f8721cbb97f72bc19e972846bd7aaf91901658 1 k t": false, "EVAL_RO x 0": false,
		"GET k": false, "SET k v": false, "XADD s * f v": false, "XADD s * maxlen 1": false,
		"xadd s NOMKSTREAM DELREF MINID ~ 4 * f v": true, "XADD s MAXLEN = 3 * f v": true, "XADD s KEEPREF": false, "PING": false, "SUBSCRIBE c": false, "": false,
		"XREADGROUP GROUP g c STREAMS a b > >": false, "XREADGROUP GROUP g c STREAMS a b > 0": true, "XREADGROUP GROUP g c STREAMS a": true,
	} {
		if got := Meddles(scanCommand([]byte(commandOf(strings.Fields(line)...)))); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// XTRIM and SWAPDB are seen: they find what is held where it was.
func TestHeldGoesBackBeforeTrimAndSwap(t *testing.T) {
	for _, args := range [][]string{{"XTRIM", "b", "MAXLEN", "0"}, {"SWAPDB", "0", "1"}} {
		holding(t, func(w *world, _ *testClient, _ string) {
			other := w.client(0)
			v := other.s.Command(scanCommand([]byte(commandOf(args...))))
			if v.Action != Defer {
				w.t.Fatalf("%v: %v", args, v.Action)
			}
			v.Task.Run(context.Background())
			if p := w.pending("b"); len(p) != 1 || p[0].owner != "dead" {
				w.t.Errorf("%v: pending %+v", args, p)
			}
		})
	}
}

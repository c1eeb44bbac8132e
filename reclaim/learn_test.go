package reclaim

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// flood has a connection claim of n streams at once, none of which is known, and returns
// the verdicts' watches, which have not seen the replies yet.
func (w *world) flood(c *testClient, name string, n int) (answered []func()) {
	for i := range n {
		s := fmt.Sprintf("%s%d", name, i)
		w.raw("XGROUP", "CREATE", s, "g", "$", "MKSTREAM")
		args := claimArgs(s, fmt.Sprint("w", i%maxSessionConsumers))
		v := c.s.Command(scanCommand([]byte(commandOf(args...))))
		if v.Action != Forward || v.Watch == nil {
			w.t.Fatalf("%v: %+v", args, v)
		}
		answered = append(answered, func() { v.Watch.Seen([]byte(w.raw(args...))) })
	}
	return answered
}

func (w *world) learning() int {
	e := w.engines[0]
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.learnings)
}

// TestLearningsAreBounded: a flood of new streams is answered by the server, and only so
// many are asked about at a time, of which one client has a few.
func TestLearningsAreBounded(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		for _, answer := range w.flood(w.client(0), "a", 2*maxSessionLearnings) {
			answer()
		}
		if n := w.learning(); n != maxSessionLearnings {
			w.t.Errorf("%d learnings for one client", n)
		}
		for i := range 2 * maxLearnings / maxSessionLearnings {
			for _, answer := range w.flood(w.client(0), fmt.Sprint("b", i, "-"), maxSessionLearnings) {
				answer()
			}
		}
		if n := w.learning(); n != maxLearnings {
			w.t.Errorf("%d learnings in all", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := w.learning(); n != 0 || !w.engines[0].asking.empty() {
			w.t.Errorf("%d learnings do not end", n)
		}
		for range 2 { // what was not asked about is the next time
			for i := range maxSessionLearnings {
				w.client(0).do(claimArgs(fmt.Sprint("a", maxSessionLearnings+i), "late")...)
			}
			time.Sleep(time.Second)
		}
		if n := len(w.engines[0].Streams()); n != maxLearnings+maxSessionLearnings {
			w.t.Errorf("%d streams known", n)
		}
	})
}

// TestDepartedTeachNothing: what a client has left behind in its socket is carried out, but
// is no reason to ask the server about anything, nor to wait for that.
func TestDepartedTeachNothing(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.client(0)
		answers := w.flood(c, "s", 2)
		other := w.client(0)
		w.flood(other, "o", 1)[0]()
		c.s.Part()
		for _, answer := range answers {
			answer()
		}
		if n := w.learning(); n != 1 {
			w.t.Errorf("%d learnings", n)
		}
		for _, args := range [][]string{claimArgs("o0", "w"), {"GET", "autoclaim:g:o0"}} {
			if v := c.s.Command(scanCommand([]byte(commandOf(args...)))); v.Action != Forward {
				w.t.Errorf("%v waits: %+v", args, v)
			}
			if v := other.s.Command(scanCommand([]byte(commandOf(args...)))); v.Action != Defer {
				w.t.Errorf("%v of one that is here: %+v", args, v)
			}
		}
		time.Sleep(time.Second)
	})
}

// Who reads other streams each time has only so many put under rounds, and is forwarded beyond; a set
// that is under rounds already is shared by whoever reads it, and in time there is room again.
func TestFreshSetsAreBounded(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		e := w.engines[0]
		w.known("a", "b")
		e.fresh.AllowN(time.Now(), int(e.fresh.Tokens()))
		e.fresh.SetLimit(rate.Every(testInterval))
		other := w.client(0)
		pass1(other, "v", []string{"a", "b"})
		pass1(other, "v", []string{"a", "b"})
		if other.last() != Answer {
			w.t.Error("a set that others read is not shared")
		}
		w.raw("XGROUP", "CREATE", "c", "g", "$", "MKSTREAM")
		late := w.client(0)
		pass1(late, "u", []string{"a", "c"})
		if n := len(e.sweeps); n != 1 {
			w.t.Errorf("%d sets are under rounds", n)
		}
		time.Sleep(3 * testInterval)
		pass1(late, "u", []string{"a", "c"})
		pass1(late, "u", []string{"a", "c"})
		if late.last() != Answer {
			w.t.Error("there is never room again")
		}
	})
}

package reclaim

import (
	"strings"
	"testing"
	"time"
)

// An XADD that may delete what is held sends nothing back: that goes when its consumer asks, whose
// call is the server's to answer.
func TestHeldGoesBackWhenAskedForAfterATrim(t *testing.T) {
	for name, add := range map[string]func(w *world, c *testClient){
		"by itself": func(_ *world, c *testClient) { c.do("XADD", "b", "MAXLEN", "~", "1000", "*", "f", "v") },
		"in a transaction": func(_ *world, c *testClient) {
			c.block([]string{"MULTI"}, []string{"XADD", "b", "MINID", "1", "*", "f", "v"}, []string{"EXEC"})
		},
		"unseen": func(w *world, _ *testClient) {
			w.engines[0].Trim(0, scanAll([][]string{{"XADD", "b", "MAXLEN", "5", "*", "f", "v"}})[0])
		},
	} {
		t.Run(name, func(t *testing.T) {
			holding(t, func(w *world, c *testClient, id string) {
				add(w, w.client(0))
				if w.engines[0].heldNow() != 1 || w.pending("b")[0].owner != "w" {
					w.t.Errorf("sent back at once: %+v", w.pending("b"))
				}
				before := w.srv.executed("XAUTOCLAIM")
				if r := c.do(claimArgs("b", "w")...); !strings.Contains(r, id) {
					w.t.Errorf("%q", r)
				}
				if w.srv.executed("XAUTOCLAIM") == before {
					w.t.Error("it was handed out as it had been held")
				}
			})
		})
	}
}

// One that deletes nothing, or from another stream, changes nothing.
func TestHeldIsHandedOutBesideOtherXADDs(t *testing.T) {
	for _, args := range [][]string{{"XADD", "b", "*", "f", "v"}, {"XADD", "a", "MAXLEN", "1000", "*", "f", "v"}} {
		holding(t, func(w *world, c *testClient, id string) {
			w.client(0).do(args...)
			before := w.srv.executed("XAUTOCLAIM")
			if r := c.do(claimArgs("b", "w")...); !strings.Contains(r, id) || c.last() != Answer || w.srv.executed("XAUTOCLAIM") != before {
				w.t.Errorf("%v: %v %q", args, c.last(), r)
			}
		})
	}
}

// A claim that overtakes such an XADD, or that it overtakes, brings nothing that is handed out as it is.
func TestTrimDuringAClaimAhead(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a", "b")
		w.abandon("a")
		w.abandon("b")
		time.Sleep(testMinIdle + 2*testInterval)
		e := w.engines[0]
		producer := w.client(0)
		cmd := scanAll([][]string{{"XADD", "b", "MAXLEN", "5", "*", "f", "v"}})[0]
		v := producer.s.Command(cmd)
		if v.Watch == nil {
			w.t.Fatal("its reply is not waited for")
		}
		c.do(claimArgs("a", "w")...)
		v.Watch.seen([]byte("$3\r\n9-1\r\n"))
		for b := range e.held {
			if !b.trimmed {
				w.t.Error("not noted")
			}
		}
		if e.heldNow() != 1 {
			w.t.Error("nothing is held: this proves nothing")
		}
	})
}

package reclaim

import (
	"testing"
	"time"
)

// A client acks or deletes an entry while the reply to a claim that has got it is still on its way:
// it was not held yet when the command came by, and must not be handed out once the client knows
// that it is acked.
func TestNamedWhileItsClaimIsUnderWay(t *testing.T) {
	for _, name := range []string{"XACK", "XDEL"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, nil, func(w *world) {
				c := w.known("a", "b")
				other := w.client(0)
				w.abandon("a")
				id := w.abandon("b")
				time.Sleep(testMinIdle + 2*testInterval)
				claimed := make(chan string)
				go func() { claimed <- c.do(claimArgs("a", "w")...) }()
				time.Sleep(6 * time.Millisecond) // the server has got it, and its reply is under way
				args := map[string][]string{"XACK": {name, "b", "g", id}, "XDEL": {name, "b", id}}[name]
				if r := other.do(args...); r != ":1\r\n" {
					w.t.Fatalf("%q: %q", args, r)
				}
				if r := <-claimed; len(entriesOf(r)) != 1 {
					w.t.Fatalf("the claim brought %q", r)
				}
				if n := w.engines[0].heldNow(); n != 0 {
					w.t.Errorf("%d held", n)
				}
				if r := c.do(claimArgs("b", "w")...); len(entriesOf(r)) > 0 {
					w.t.Errorf("handed out: %q", r)
				}
			})
		})
	}
}

// The same where the claim is sent after the command was judged, and reaches the server before it.
// An XAUTOCLAIM that takes whatever there is names no entry.
func TestNamedBeforeItsClaimAndExecutedAfter(t *testing.T) {
	for _, tt := range []struct{ block, claim bool }{{}, {block: true}, {claim: true}, {true, true}} {
		inWorld(t, 1, nil, func(w *world) {
			c := w.known("a", "b")
			other := w.client(0)
			w.abandon("a")
			id := w.abandon("b")
			time.Sleep(testMinIdle + 2*testInterval)
			list := [][]string{{"XACK", "b", "g", id}}
			if tt.claim {
				list[0] = []string{"XAUTOCLAIM", "b", "g", "other", "0", "0"}
			}
			if tt.block {
				list = [][]string{{"MULTI"}, list[0], {"EXEC"}}
			}
			var raw []byte
			for _, args := range list {
				raw = append(raw, commandOf(args...)...)
			}
			cmds := scanAll(list)
			v := other.s.Command(cmds[0])
			if tt.block {
				v = other.s.Block(cmds)
			}
			claimed := make(chan string)
			go func() { claimed <- c.do(claimArgs("a", "w")...) }()
			time.Sleep(time.Millisecond)
			if _, err := other.carry(v, raw, len(list)); err != nil {
				w.t.Error(err)
			}
			if r := <-claimed; len(entriesOf(r)) != 1 {
				w.t.Errorf("the claim brought %q", r)
			}
			if r := c.do(claimArgs("b", "w")...); len(entriesOf(r)) > 0 {
				w.t.Errorf("handed out: %q", r)
			}
		})
	}
}

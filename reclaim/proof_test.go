package reclaim

import (
	"strings"
	"testing"
	"time"
)

// TestRevokedRightIsNoticed: a user that may look but not claim any more hears it from the
// server, of all streams when the command is denied, of one when that is.
func TestRevokedRightIsNoticed(t *testing.T) {
	for _, all := range []bool{true, false} {
		inWorld(t, 2, nil, func(w *world) {
			names := w.streams(3)
			a, b := w.client(0), w.client(1) // one looks for both
			for range 3 {
				pass1(a, "a", names)
				pass1(b, "b", names)
				time.Sleep(testInterval)
			}
			wait := time.Duration(len(names)+1) * testInterval
			w.srv.mu.Lock()
			if all {
				w.srv.denied["XAUTOCLAIM"] = true
				wait = testInterval + time.Second
			} else {
				w.srv.guarded[names[1]] = true
			}
			w.srv.mu.Unlock()
			for end := time.Now().Add(wait); time.Now().Before(end); {
				time.Sleep(time.Second)
				pass1(a, "a", names)
				pass1(b, "b", names)
			}
			for i, c := range []*testClient{a, b} {
				for _, s := range names {
					denied := all || s == names[1]
					if r := c.do(claimArgs(s, string(rune('a'+i)))...); strings.HasPrefix(r, "-NOPERM") != denied {
						w.t.Errorf("proxy %d, %s: %q", i, s, r)
					}
				}
			}
		})
	}
}

// TestNobodyIsSpokenForThatIsSilent: the server would take its consumer for a busy one.
func TestNobodyIsSpokenForThatIsSilent(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		w.known("a", "b")
		before := w.srv.executed("XAUTOCLAIM")
		time.Sleep(8 * testInterval)
		if n := w.srv.executed("XAUTOCLAIM") - before; n > proofIntervals+1 {
			w.t.Errorf("asked %d times", n)
		}
	})
}

package reclaim

import (
	"fmt"
	"maps"
	"os"
	"testing"
	"time"
)

// traffic is what the engines of a fleet send by themselves.
type traffic struct {
	lease, probes, other int
}

func (a traffic) minus(b traffic) traffic {
	return traffic{a.lease - b.lease, a.probes - b.probes, a.other - b.other}
}

func (a traffic) sum() int { return a.lease + a.probes + a.other }

// sent counts what the server has executed of the engines' own commands. A script of the lease
// counts as one, with what it runs.
func (w *world) sent() (n traffic) {
	w.srv.mu.Lock()
	counts := maps.Clone(w.srv.counts)
	w.srv.mu.Unlock()
	for name, k := range counts {
		switch name {
		case "XREADGROUP", "XADD", "XAUTOCLAIM": // their workers'
		case "XPENDING", "XINFO":
			n.probes += k
		case "EVAL", "EVALSHA", "GET":
			n.lease += k
		default:
			n.other += k
		}
	}
	return n
}

// TestThousandProxies: what a fleet, each with one worker on the same streams, sends a second in the
// calm, and when the server comes back after a time in which it was away for all of them: the
// traffic is that of the lease, a command or two of each proxy an interval, spread over it, and
// one of them looks.
func TestThousandProxies(t *testing.T) {
	engines, streams := 100, 5
	if os.Getenv("CASES_LONG") == "1" {
		engines = 1000
	}
	inWorld(t, engines, nil, func(w *world) {
		names := w.streams(streams)
		var clients []*testClient
		for i := range engines {
			clients = append(clients, w.client(i))
		}
		// Workers do not keep step: each goes through its streams at its own time.
		pass := func() {
			for i, c := range clients {
				pass1(c, fmt.Sprintf("w%d", i), names)
				time.Sleep(testInterval / time.Duration(4*engines))
			}
		}
		watch := func(stretch time.Duration) (total, peak traffic) {
			start, last := w.sent(), w.sent()
			for end := time.Now().Add(stretch); time.Now().Before(end); {
				time.Sleep(time.Second)
				now := w.sent()
				if s := now.minus(last); s.sum() > peak.sum() {
					peak = s
				}
				last = now
			}
			return last.minus(start), peak
		}
		working := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-working:
					return
				default:
					pass()
				}
			}
		}()
		time.Sleep(3 * testInterval)
		calm, calmPeak := watch(5 * testInterval)
		w.srv.mu.Lock()
		w.srv.fault = func(control bool, first string) fate {
			if control || first == "XPENDING" || first == "XINFO" {
				return unsent
			}
			return fine
		}
		w.srv.mu.Unlock()
		time.Sleep(6 * testInterval)
		w.srv.mu.Lock()
		w.srv.fault = nil
		w.srv.mu.Unlock()
		back, backPeak := watch(5 * testInterval)
		close(working)
		<-done
		t.Logf("%d proxies in five intervals of %v: calm %+v, at most %+v in a second; after an outage %+v, at most %+v",
			engines, testInterval, calm, calmPeak, back, backPeak)
		for name, s := range map[string]struct{ total, peak traffic }{"calm": {calm, calmPeak}, "back": {back, backPeak}} {
			if limit := 5 * (3*engines/2 + 30*streams); s.total.sum() > limit {
				t.Errorf("%s: %+v, more than %d", name, s.total, limit)
			}
			// Spread evenly it would be a tenth of an interval's; the look comes on top.
			if limit := 3*engines/10 + 30 + 4*streams; s.peak.sum() > limit {
				t.Errorf("%s: %+v in a second, more than %d", name, s.peak, limit)
			}
			if s.total.lease < 4*engines {
				t.Errorf("%s: %+v: not everybody asks", name, s.total)
			}
		}
	})
}

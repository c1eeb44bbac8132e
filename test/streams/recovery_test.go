//go:build streams

package streams

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
	"streamproxy/reclaim"
)

// recoveries are the ways in which a dead worker's entries reach another. There is no switch for
// either: a worker that never blocks gets them by its own asking alone; one that never asks, or only
// after reads that brought something, on an idle queue, by its blocked read.
var recoveries = []struct {
	name  string
	form  form
	block time.Duration
	busy  bool
}{
	{"with a lock, busy", locked, 2 * time.Second, true},
	{"with a lock, idle", locked, 2 * time.Second, false},
	{"with a lock, busy, never blocked", locked, -1, true},
	{"with a lock, idle, never blocked", locked, -1, false},
	{"asks alone, idle", plain, 500 * time.Millisecond, false},
	{"in a transaction, busy", whole, 2 * time.Second, true},
	{"in a transaction, busy, never blocked", whole, -1, true},
	{"in a transaction, idle", whole, 2 * time.Second, false}, // case 53
	{"never asks, blocked briefly", never, 500 * time.Millisecond, false},
	{"never asks, blocked for long", never, 5 * time.Second, false},
	{"never asks, blocked for ever", never, 0, false},
	{"never asks, busy", never, 2 * time.Second, true},
}

// A worker dies with 500 entries over 161 streams. Each of them arrives at a live one, once, within
// the bound, as its second delivery; so does, once, whatever else is published meanwhile.
func TestRecovery(t *testing.T) {
	for _, tt := range recoveries {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			f := startProxy(t, s.Addr(), func(c *proxy.Config) {
				if tt.form == never {
					c.Reclaim.Groups = []reclaim.GroupRule{{Pattern: "g", MinIdle: minIdle}}
				}
			})
			c := direct(t, s)
			list := names("s", 161)
			groups(c, "g", list)
			l := newLedger()
			worker{group: "g", name: "live", streams: list, form: tt.form, block: tt.block, count: 8, ledger: l}.start(t, f.addr, false)
			fresh := publish(c, list, 1)
			f.client().state(list[160], "g", "cold")
			stop := func() []string { return nil }
			if tt.busy {
				stop = busy(t, s, list)
			}
			dead := abandon(f.client(), "g", "dead", list, 500)
			killed := time.Now()
			eventually(t, "all have been acked", func() bool { return l.settled(dead) == len(dead) })
			took := l.last(dead).Sub(killed)
			t.Logf("took %v of %v", took.Round(time.Millisecond), bound(tt.block))
			if limit := bound(tt.block) + slack; took > limit {
				t.Errorf("took %v, more than %v", took, limit)
			}
			l.exact(t, dead, 2)
			fresh = append(fresh, stop()...)
			eventually(t, "the new ones have been acked", func() bool { return l.settled(fresh) == len(fresh) })
			l.exact(t, fresh, 0) // the dying one may have been quicker to read
			nothingLeft(c, "g", list)
			path(t, f, tt.form, tt.block)
		})
	}
}

// A library that lists what is idle and claims it by id is served by the server: what it lists must be
// true now, and the proxy knows what was true at its last look. It recovers as without a proxy, and
// beside what the proxy gives its blocked reads if there is a rule for its group: each entry once.
func TestListingRecovery(t *testing.T) {
	for name, rules := range map[string][]reclaim.GroupRule{
		"forwarded": nil, "beside a rule": {{Pattern: "g", MinIdle: minIdle}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.Reclaim.Groups = rules })
			c := direct(t, s)
			list := names("s", 161)
			groups(c, "g", list)
			l := newLedger()
			worker{group: "g", name: "live", streams: list, form: listing, block: 500 * time.Millisecond, count: 8, ledger: l}.start(t, f.addr, false)
			dead := abandon(direct(t, s), "g", "dead", list, 500)
			killed := time.Now()
			eventually(t, "all have been acked", func() bool { return l.settled(dead) == len(dead) })
			if took, limit := l.last(dead).Sub(killed), bound(500*time.Millisecond)+slack; took > limit {
				t.Errorf("took %v, more than %v", took, limit)
			}
			l.exact(t, dead, 2)
			nothingLeft(c, "g", list)
			t.Logf("%v after the kill, %d entries by the proxy; at the server cmdstat_xpending:%s",
				l.last(dead).Sub(killed).Round(time.Millisecond), f.count("delivered"), s.Info("commandstats", "cmdstat_xpending"))
		})
	}
}

// path fails the test unless the entries came the way that the worker leaves open.
func path(t *testing.T, f *front, form form, block time.Duration) {
	t.Helper()
	if f.count("delivered") < 500 {
		t.Errorf("the proxy delivered %d of the entries", f.count("delivered"))
	}
	asked := f.count("local xautoclaim") + f.count("local multi")
	if form == never && asked > 0 {
		t.Errorf("%d claims were asked for by a worker that never does", asked)
	}
	if form != never && asked == 0 {
		t.Error("no claim was answered by the proxy")
	}
}

// busy publishes all the time, until stop is called, which returns what the entries are called.
func busy(t *testing.T, s *redistest.Server, streams []string) (stop func() []string) {
	c := s.Client()
	end, done := make(chan struct{}), make(chan struct{})
	var keys []string
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			stream := streams[rand.N(len(streams))]
			id, err := c.Do("XADD", stream, "*", "f", "v")
			if err != nil || id[0] != '$' {
				t.Errorf("publish: %q, %v", id, err)
				return
			}
			keys = append(keys, entryKey(stream, strings.Fields(id)[1]))
		}
	}()
	return func() []string {
		close(end)
		<-done
		return keys
	}
}

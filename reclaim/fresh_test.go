package reclaim

import (
	"context"
	"testing"
	"time"
)

// readFor lets a consumer read new entries of the streams, and never see them.
func (w *world) readFor(consumer string, names []string) (args []string, reply string) {
	args = readArgs(consumer, names)
	return args, w.raw(args...)
}

func TestUnreadIsReclaimableAtOnce(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		names := w.streams(2)
		c := w.known(names[0]) // of the other one nothing is known
		for _, s := range names {
			w.raw("XADD", s, "*", "k", "v")
		}
		args, reply := w.readFor("gone", names)
		if err := w.engines[0].ReturnUnread(context.Background(), c.id, scanCommand([]byte(commandOf(args...))), []byte(reply), time.Now()); err != nil {
			w.t.Fatal(err)
		}
		for i, want := range []time.Duration{testMinIdle, 0} {
			p := w.pending(names[i])
			if len(p) != 1 || p[0].owner != "gone" || p[0].count != 0 || p[0].idle < want || p[0].idle > want+time.Second {
				w.t.Errorf("%s: %+v, want it idle for %v", names[i], p, want)
			}
		}
		if ids := entriesOf(c.do(claimArgs(names[0], "w")...)); len(ids) != 1 {
			w.t.Errorf("whoever asks next gets %v", ids)
		}
	})
}

// An entry from the beginning of time has been idle for a year, no longer: the server would take
// what reaches back before the epoch for no time at all.
func TestAgeIsBounded(t *testing.T) {
	e := new(Engine)
	now := time.Now()
	if got := e.age([]string{"1-1"}, now); got != 0 {
		t.Errorf("an age of %v without a clock", got)
	}
	e.clock.set(time.UnixMilli(1_700_000_000_000), now)
	for id, want := range map[string]time.Duration{
		"1-1":                     maxAge,
		"1699999999000-0":         time.Second,
		"1700000001000-0":         -time.Second,
		"18446744073709551615-18": time.UnixMilli(1_700_000_000_000).Sub(time.UnixMilli(maxMillis)),
	} {
		if got := e.age([]string{"0-1", id}, now); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
}

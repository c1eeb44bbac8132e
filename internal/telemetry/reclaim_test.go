package telemetry

import (
	"fmt"
	"testing"
	"time"
)

func TestReclaimIsCounted(t *testing.T) {
	m := newTestMetrics(&Snapshot{})
	c := m.Reclaim
	c.Round("led")
	c.Round("a word of a later version")
	c.Succeeded(time.UnixMilli(1_700_000_000_500))
	c.Leases(3)
	c.Local("multi")
	c.Local("script")
	c.Forwarded("min_idle")
	c.Observed("xautoclaim", true)
	c.Observed("xautoclaim", false)
	c.Observed("multi", false)
	c.Entries("claimed", "s", "g", 5)
	c.Entries("given_back", "s", "g", 2)
	c.Entries("a word of a later version", "s", "g", 2)
	c.Hot(4)
	c.Held(7, 900)
	c.LargePEL("s", "g", 60000, time.Minute)
	c.ConsumerDeleted(6)
	expectSeries(t, m, map[string]float64{
		`rounds_total{result="led"}`:                                           1,
		`rounds_total{result="other"}`:                                         1,
		`rounds_total{result="failed"}`:                                        0,
		`last_success_timestamp_seconds`:                                       1_700_000_000.5,
		`lease_held`:                                                           3,
		`local_answers_total{command="multi"}`:                                 1,
		`local_answers_total{command="script"}`:                                1,
		`forwarded_total{reason="min_idle"}`:                                   1,
		`observed_total{result="differed"}`:                                    1,
		`observed_total{result="same"}`:                                        2,
		`entries_total{action="claimed",group="g",stream="s"}`:                 5,
		`entries_total{action="given_back",group="g",stream="s"}`:              2,
		`entries_total{action="delivered",group="g",stream="s"}`:               0,
		`entries_total{action="claimed",group="__other__",stream="__other__"}`: 0,
		`hot_streams`:                        4,
		`held_entries`:                       7,
		`held_bytes`:                         900,
		`scan_seconds{group="g",stream="s"}`: 60,
		`scan_seconds{group="__other__",stream="__other__"}`: 0,
		`deleted_consumer_entries_total`:                     6,
	})
}

func expectSeries(t *testing.T, m *Metrics, want map[string]float64) {
	t.Helper()
	got := scrape(t, m)
	for name, v := range want {
		if g, ok := got[prefix+"reclaim_"+name]; !ok || g != v {
			t.Errorf("%s = %v (present: %v), want %v", name, g, ok, v)
		}
	}
}

// The first pairs have series of their own and keep them; the rest shares one. Names
// that no label can hold are written so that one can, or share as well.
func TestGroupsAreBounded(t *testing.T) {
	m := newTestMetrics(&Snapshot{})
	long := string(make([]byte, maxGroupName+1))
	m.Reclaim.Entries("claimed", long, "g", 1)
	m.Reclaim.Entries("claimed", "s\xff", "g", 1)
	for i := range 3 * maxGroups {
		m.Reclaim.Entries("claimed", fmt.Sprint(i), "g", 1)
	}
	m.Reclaim.Entries("claimed", "0", "g", 1)
	expectSeries(t, m, map[string]float64{
		`entries_total{action="claimed",group="g",stream="s` + "\uFFFD" + `"}`: 1,
		`entries_total{action="claimed",group="g",stream="0"}`:                 2,
		`entries_total{action="claimed",group="__other__",stream="__other__"}`: 2*maxGroups + 2,
	})
	if n := len(m.Reclaim.groups); n != maxGroups+1 {
		t.Errorf("%d pairs have series, want %d and the shared one", n, maxGroups)
	}
}

// A series of a large group goes when the group is small again; the shared one has the
// longest of what it stands for.
func TestScansEnd(t *testing.T) {
	m := newTestMetrics(&Snapshot{})
	c := m.Reclaim
	for i := range maxGroups {
		c.Entries("claimed", fmt.Sprint(i), "g", 1)
	}
	const shared = `scan_seconds{group="__other__",stream="__other__"}`
	c.LargePEL("0", "g", 60000, 30*time.Second)
	c.LargePEL("late", "g", 60000, 40*time.Second)
	c.LargePEL("later", "g", 90000, 50*time.Second)
	expectSeries(t, m, map[string]float64{`scan_seconds{group="g",stream="0"}`: 30, shared: 50})
	c.LargePEL("0", "g", 0, 0)
	c.LargePEL("later", "g", 0, 0)
	expectSeries(t, m, map[string]float64{shared: 40})
	c.LargePEL("late", "g", 0, 0)
	expectSeries(t, m, map[string]float64{shared: 0})
	if _, ok := scrape(t, m)[prefix+`reclaim_scan_seconds{group="g",stream="0"}`]; ok {
		t.Error("a small group still has a series")
	}
}

// These are called with a lock held that every stream command takes.
func TestReclaimEventsDoNotAllocate(t *testing.T) {
	c := newTestMetrics(&Snapshot{}).Reclaim
	c.Entries("claimed", "stream", "group", 1)
	if n := testing.AllocsPerRun(100, func() {
		c.Local("xautoclaim")
		c.Forwarded("expired")
		c.Entries("claimed", "stream", "group", 1)
		c.Held(1, 1)
		c.Hot(1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

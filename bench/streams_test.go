package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"streamproxy/bench/internal/streamlab"
)

// streamReport is one in which every goal is met, by a little.
func streamReport() *streamlab.Report {
	row := func(side string, n int, p50, p95, perSecond float64) streamlab.Row {
		latencies := slices.Repeat([]float64{p50}, 18)
		return streamlab.Row{Pair: "1.2.4+8", Side: side, Streams: n, Arrivals: streamlab.Steady,
			Latencies: append(latencies, p95, p95), PerSecond: perSecond}
	}
	return &streamlab.Report{
		Program:  "streams",
		Measured: map[string]streamlab.Measured{"rows": {Started: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)}},
		Rows: []streamlab.Row{
			row(reference, 1, 30, 31, 3), row(reference, 161, 30, 31, 3), row(direct, 1, 30, 31, 3), row(patched, 1, 30, 31, 2), row(proxied, 1, 30.9, 33, 2.2),
			row(direct, 161, 4000, 9000, 90), row(patched, 161, 30, 31, 7), row(proxied, 161, 30.9, 33.9, 8),
			{Pair: "1.2.4+8", Side: proxied, Streams: 161, Arrivals: streamlab.Poisson, Latencies: []float64{500}},
		},
		Bursts: []streamlab.Burst{
			{Pair: "1.2.4+8", Side: "no distance", Messages: 800, Seconds: 7.2, Reads: 100}, // the floor is 10 s
			{Pair: "1.2.4+8", Side: proxied, Messages: 800, Seconds: 11.4, Reads: 101},
		},
		Colds: []streamlab.Cold{
			{Pair: "1.2.4+8", Side: direct, First: 30, Second: 9000},
			{Pair: "1.2.4+8", Side: proxied, First: 30, Second: 900},
		},
		Fleets: []streamlab.Fleet{{Proxies: 1, PerInterval: 160}, {Proxies: 3, PerInterval: 190}, {Proxies: 10, PerInterval: 192}},
		Recoveries: []streamlab.Recovery{
			{Pair: "1.2.4+8", Queue: "idle", Entries: 9, Arrived: 9, CountedTwice: 9, Seconds: 25, BoundSeconds: 26},
		},
	}
}

func TestStreamGoals(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*streamlab.Report)
		want  string // part of what is missed
	}{
		{"all met", func(*streamlab.Report) {}, ""},
		{"p50", func(r *streamlab.Report) { r.Rows[7].Latencies = slices.Repeat([]float64{31.2}, 20) }, "161 streams: p50"},
		{"p95", func(r *streamlab.Report) { r.Rows[7].Latencies[18] = 35; r.Rows[7].Latencies[19] = 35 }, "161 streams: p95"},
		{"commands", func(r *streamlab.Report) { r.Rows[4].PerSecond = 2.4 }, "1 streams: Redis commands"},
		{"burst", func(r *streamlab.Report) { r.Bursts[1].Seconds = 11.6 }, "burst of 800"},
		{"first", func(r *streamlab.Report) { r.Colds[1].First = 1001 }, "first message"},
		{"next", func(r *streamlab.Report) { r.Colds[1].Second = 1001 }, "next message"},
		{"fleet", func(r *streamlab.Report) { r.Fleets[2].PerInterval = 193 }, "10 proxies"},
		{"lost", func(r *streamlab.Report) { r.Recoveries[0].Arrived = 8 }, "that arrived"},
		{"twice", func(r *streamlab.Report) { r.Recoveries[0].Repeated = 1 }, "more than once"},
		{"count", func(r *streamlab.Report) { r.Recoveries[0].CountedTwice = 8 }, "delivery count"},
		{"late", func(r *streamlab.Report) { r.Recoveries[0].Seconds = 27 }, "until the last"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := streamReport()
			tt.spoil(r)
			var missed []string
			for _, v := range judgeStreams(r) {
				if !v.met() && v.binding {
					missed = append(missed, v.what)
				}
			}
			if tt.want == "" && len(missed) > 0 || tt.want != "" && (len(missed) != 1 || !strings.Contains(missed[0], tt.want)) {
				t.Errorf("missed %q, want %q", missed, tt.want)
			}
		})
	}
	if n := len(judgeStreams(streamReport())); n != 15 {
		t.Errorf("%d goals", n)
	}
}

func TestParseStreams(t *testing.T) {
	o, err := parseStreams(nil)
	if err != nil || o.messages != 50 || len(o.parts) != len(streamParts) || len(o.pairs) != 3 {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = parseStreams([]string{"--quick", "--messages", "9", "--parts", "burst"})
	if err != nil || o.messages != 9 || o.burst != 200 || len(o.parts) != 1 || len(o.pairs) != 1 {
		t.Errorf("quick: %+v, %v", o, err)
	}
	for _, bad := range []string{"--parts=rows,all", "--messages=0", "--gap=10ms", "--rounds=0"} {
		if _, err := parseStreams([]string{bad}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestStreamChapter(t *testing.T) {
	folder := t.TempDir()
	if _, err := streamReport().Save(folder); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report(t.Context(), []string{"--results", folder, "--docs", folder, "--readme", ""}, &out); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(folder, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## Stream workers", "pictures/streams-1.2.4-redis-py-8.svg", "| S10 |"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q on the page", want)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "pictures", "streams-1.2.4-redis-py-8.svg")); err != nil {
		t.Error(err)
	}
}

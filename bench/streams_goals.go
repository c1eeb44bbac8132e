package main

import (
	"fmt"

	"streamproxy/bench/internal/streamlab"
)

// judgeStreams holds goal S10 against what was measured.
func judgeStreams(r *streamlab.Report) []verdict {
	j := &judgement{}
	for i := range r.Rows {
		j.streamRow(r, &r.Rows[i])
	}
	for i := range r.Bursts {
		j.burst(r, &r.Bursts[i])
	}
	for _, c := range r.Colds {
		if c.Side == proxied {
			j.add("S10", fmt.Sprintf("%s: first message after a start, ms", c.Pair), c.First, 1000, false, true)
			j.add("S10", fmt.Sprintf("%s: the next message after a start, ms", c.Pair), c.Second, 1000, false, true)
		}
	}
	j.fleets(r)
	for i := range r.Recoveries {
		j.recovery(&r.Recoveries[i])
	}
	return j.verdicts
}

// The sides by name.
const (
	proxied = "streamproxy"
	direct  = "direct"
	patched = "patched"
	// reference is direct over one stream, measured beside each row.
	reference = "reference"
)

// streamRow compares a proxied row with direct over one stream at the same time, and its commands with the
// patched worker's. Random arrivals are not judged: some of them meet the worker's own pass.
func (j *judgement) streamRow(r *streamlab.Report, row *streamlab.Row) {
	if row.Side != proxied || row.Arrivals != streamlab.Steady {
		return
	}
	name := fmt.Sprintf("%s, %d streams", row.Pair, row.Streams)
	if base := r.Find(row.Pair, reference, row.Streams, streamlab.Steady); base != nil {
		j.add("S10", name+": p50 above direct's over one stream, ms", row.P(0.5)-base.P(0.5), 1, false, true)
		j.add("S10", name+": p95 above direct's over one stream, ms", row.P(0.95)-base.P(0.95), 3, false, true)
	}
	if base := r.Find(row.Pair, patched, row.Streams, streamlab.Steady); base != nil && base.PerSecond > 0 {
		j.add("S10", name+": Redis commands against the patched worker's", row.PerSecond/base.PerSecond, 1.15, false, true)
	}
}

// burst compares with the same worker beside its server, plus a round trip a read.
func (j *judgement) burst(r *streamlab.Report, b *streamlab.Burst) {
	if floor := r.Floor(b.Pair); b.Side == proxied && floor > 0 {
		j.add("S10", fmt.Sprintf("%s: burst of %d against the floor", b.Pair, b.Messages), b.Seconds/floor, 1.15, false, true)
	}
}

// fleets compares with the smallest fleet: a fifth more, or two commands a proxy and interval.
func (j *judgement) fleets(r *streamlab.Report) {
	for i := range r.Fleets {
		f, one := &r.Fleets[i], &r.Fleets[0]
		if i > 0 {
			bound := max(1.2*one.PerInterval, one.PerInterval+2*float64(f.Proxies))
			j.add("S10", fmt.Sprintf("%d proxies: reclaim commands an interval", f.Proxies), f.PerInterval, bound, false, true)
		}
	}
}

func (j *judgement) recovery(r *streamlab.Recovery) {
	name := fmt.Sprintf("%s, %s queue: ", r.Pair, r.Queue)
	j.add("S10", name+"entries of a killed worker that arrived", float64(r.Arrived), float64(r.Entries), true, true)
	j.add("S10", name+"of them more than once", float64(r.Repeated), 0, false, true)
	j.add("S10", name+"delivery count 2", float64(r.CountedTwice), float64(r.Entries), true, true)
	j.add("S10", name+"seconds until the last", r.Seconds, r.BoundSeconds, false, true)
}

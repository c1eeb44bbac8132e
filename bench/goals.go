package main

import (
	"fmt"
	"io"

	"streamproxy/bench/internal/result"
)

// verdict is one goal applied to one cell.
type verdict struct {
	goal    string
	what    string
	value   float64
	bound   float64
	atLeast bool // value must reach bound; otherwise it must not exceed it
	binding bool // missing it fails a check; the others are aims
}

func (v *verdict) met() bool {
	if v.atLeast {
		return v.value >= v.bound
	}
	return v.value <= v.bound
}

// judge applies every goal that the report has the sides for.
func judge(r *result.Report) []verdict {
	j := &judgement{report: r}
	goals := map[string]func(*result.Cell){
		"throughput": j.throughput, "idle": j.idle, "rate": j.rate,
		"large": j.large, "crowd": j.crowd, "wide": j.wide, "metrics": j.metrics,
	}
	for i := range r.Cells {
		if judge := goals[r.Program]; judge != nil {
			judge(&r.Cells[i])
		}
	}
	return j.verdicts
}

type judgement struct {
	report   *result.Report
	verdicts []verdict
}

func (j *judgement) add(goal, what string, value, bound float64, atLeast, binding bool) {
	j.verdicts = append(j.verdicts, verdict{goal, what, value, bound, atLeast, binding})
}

// throughput holds goals S1 to S3 against one cell.
func (j *judgement) throughput(c *result.Cell) {
	ours := c.Of("streamproxy")
	if ours == nil {
		return
	}
	if best := j.bestPeer(c, result.Ops, true); best > 0 {
		bound := 1.0
		if c.Callers == 1 {
			bound = 0.95
		}
		j.add("S1", c.Name()+": ops/s against the best peer", ours.Median(result.Ops)/best, bound, true, true)
	}
	if twemproxy := c.Of("nutcracker"); twemproxy != nil && c.Pipeline == 16 {
		j.add("S1", c.Name()+": ops/s against twemproxy", ours.Median(result.Ops)/twemproxy.Median(result.Ops), 2.5, true, true)
	}
	if best := j.bestPeer(c, result.ProxyCPU, false); best > 0 {
		bound := 1.0
		if c.Callers == 1 {
			bound = 1.2
		}
		j.add("S2", c.Name()+": proxy CPU against the best peer", ours.Median(result.ProxyCPU)/best, bound, false, c.Callers >= 10)
	}
	if direct := c.Of("direct"); direct != nil && c.Callers >= 50 && c.Pipeline == 1 {
		j.add("S3", c.Name()+": ops/s against direct", ours.Median(result.Ops)/direct.Median(result.Ops), 0.95, true, true)
		j.add("S3", c.Name()+": Redis CPU against direct", ours.Median(result.RedisCPU)/direct.Median(result.RedisCPU), 0.25, false, true)
	}
}

// idle holds goals S6 and S11 against one cell.
func (j *judgement) idle(c *result.Cell) {
	direct, ours, delayed := c.Of("direct"), c.Of(noDelay), c.Of(longDelay)
	if c.Callers == 1 && direct != nil && ours != nil {
		base := direct.Median(result.P50)
		if best := j.bestPeer(c, result.P50, false) - base; best > 0 {
			j.add("S6", c.Name()+": added p50 against the best peer's", (ours.Median(result.P50)-base)/best, 1.2, false, true)
		}
		if delayed != nil {
			j.add("S6", c.Name()+": p50 with a flush delay of 1ms less that without, µs", delayed.Median(result.P50)-ours.Median(result.P50), 10, false, true)
		}
	}
	if short := c.Of(shortDelay); c.Rate > 0 && short != nil {
		if wait := short.Median(result.WaitP90); wait > 0 {
			j.add("S11", c.Name()+": p90 of waits of 50 µs, µs", wait, 150, false, false)
		}
	}
}

// bestPeer returns the best median among the peers, the largest or the smallest; 0 without peers.
func (j *judgement) bestPeer(c *result.Cell, of func(result.Sample) float64, largest bool) float64 {
	var best float64
	for _, side := range j.report.Sides {
		series := c.Of(side.Name)
		if series == nil || side.Kind == "direct" || side.Kind == "streamproxy" {
			continue
		}
		median := series.Median(of)
		if best == 0 || (largest && median > best) || (!largest && median < best) {
			best = median
		}
	}
	return best
}

// writeVerdicts prints a table of goals, missed ones marked.
func writeVerdicts(out io.Writer, verdicts []verdict) {
	if len(verdicts) == 0 {
		return
	}
	fmt.Fprintf(out, "\n| goal | what | measured | bound | |\n|---|---|---:|---:|---|\n")
	for i := range verdicts {
		v := &verdicts[i]
		sign, state := "≤", "met"
		if v.atLeast {
			sign = "≥"
		}
		if !v.met() {
			state = "**missed**"
			if !v.binding {
				state = "missed (an aim)"
			}
		}
		fmt.Fprintf(out, "| %s | %s | %.2f | %s %.2f | %s |\n", v.goal, v.what, v.value, sign, v.bound, state)
	}
}

func anyMissed(verdicts []verdict) bool {
	for i := range verdicts {
		if verdicts[i].binding && !verdicts[i].met() {
			return true
		}
	}
	return false
}

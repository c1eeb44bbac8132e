package main

import (
	"strings"
	"testing"

	"streamproxy/bench/internal/result"
)

// compared returns a report of one cell with one round per side, the kinds taken from the names.
func compared(program string, cell result.Cell, samples map[string]result.Sample) *result.Report {
	r := &result.Report{Program: program}
	for side, s := range samples {
		kind, _, _ := strings.Cut(side, ":")
		r.Sides = append(r.Sides, result.SideInfo{Name: side, Kind: kind})
		cell.Add(side, s)
	}
	r.Cells = []result.Cell{cell}
	return r
}

func TestThroughputGoals(t *testing.T) {
	wide := result.Cell{Command: "GET", Callers: 50, Pipeline: 1}
	deep := result.Cell{Command: "GET", Callers: 50, Pipeline: 16}
	single := result.Cell{Command: "GET", Callers: 1, Pipeline: 1}
	direct := result.Sample{Ops: 100, RedisCPU: 8}
	peer := result.Sample{Ops: 90, RedisCPU: 2, ProxyCPU: 8}
	tests := []struct {
		name   string
		cell   result.Cell
		ours   result.Sample
		missed string // goals that are missed, binding ones
	}{
		{"all met", wide, result.Sample{Ops: 96, RedisCPU: 2, ProxyCPU: 7}, ""},
		{"slower than the peer", wide, result.Sample{Ops: 80, RedisCPU: 2, ProxyCPU: 7}, "S1 S3"},
		{"dearer than the peer", wide, result.Sample{Ops: 96, RedisCPU: 2, ProxyCPU: 9}, "S2"},
		{"spares Redis too little", wide, result.Sample{Ops: 96, RedisCPU: 3, ProxyCPU: 7}, "S3"},
		{"deep pipelines ask for more", deep, result.Sample{Ops: 200, RedisCPU: 2, ProxyCPU: 7}, "S1"},
		{"one caller has slack", single, result.Sample{Ops: 86, RedisCPU: 8, ProxyCPU: 20}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			verdicts := judge(compared("throughput", tt.cell, map[string]result.Sample{
				"direct": direct, "nutcracker": peer, "streamproxy": tt.ours,
			}))
			if got := missed(verdicts); got != tt.missed {
				t.Errorf("missed %q, want %q; verdicts %+v", got, tt.missed, verdicts)
			}
			if anyMissed(verdicts) != (tt.missed != "") {
				t.Error("the check disagrees with its verdicts")
			}
		})
	}
}

func missed(verdicts []verdict) string {
	var goals []string
	for i := range verdicts {
		if v := &verdicts[i]; v.binding && !v.met() {
			goals = append(goals, v.goal)
		}
	}
	return strings.Join(goals, " ")
}

func TestIdleGoals(t *testing.T) {
	alone := result.Cell{Command: "GET", Callers: 1, Pipeline: 1}
	verdicts := judge(compared("idle", alone, map[string]result.Sample{
		"direct": {P50: 20}, "nutcracker": {P50: 40}, "envoy": {P50: 60},
		noDelay: {P50: 43}, longDelay: {P50: 55},
	}))
	if len(verdicts) != 2 || !verdicts[0].met() || verdicts[1].met() {
		t.Errorf("verdicts %+v", verdicts)
	}
	slow := result.Cell{Command: "GET", Callers: 64, Pipeline: 1, Rate: waitRate}
	verdicts = judge(compared("idle", slow, map[string]result.Sample{shortDelay: {WaitP90: 200}}))
	if len(verdicts) != 1 || verdicts[0].met() || verdicts[0].binding {
		t.Errorf("verdicts %+v", verdicts)
	}
}

func TestNothingToJudgeWithoutStreamproxy(t *testing.T) {
	cell := result.Cell{Command: "GET", Callers: 50, Pipeline: 1}
	if got := judge(compared("throughput", cell, map[string]result.Sample{"direct": {Ops: 1}})); len(got) != 0 {
		t.Errorf("verdicts %+v", got)
	}
	var out strings.Builder
	writeVerdicts(&out, nil)
	if out.Len() != 0 {
		t.Errorf("an empty table was printed: %q", out.String())
	}
}

func TestVerdictsMarkWhatWasMissed(t *testing.T) {
	var out strings.Builder
	writeVerdicts(&out, []verdict{
		{goal: "S1", what: "a", value: 0.9, bound: 1, atLeast: true, binding: true},
		{goal: "S2", what: "b", value: 1.3, bound: 1.2},
		{goal: "S3", what: "c", value: 0.1, bound: 0.25},
	})
	for _, want := range []string{
		"| S1 | a | 0.90 | ≥ 1.00 | **missed** |", "| S2 | b | 1.30 | ≤ 1.20 | missed (an aim) |", "| S3 | c | 0.10 | ≤ 0.25 | met |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

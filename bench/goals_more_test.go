package main

import (
	"testing"

	"streamproxy/bench/internal/result"
)

// more is a sample of quantities that one benchmark has.
func more(values map[string]float64) result.Sample { return result.Sample{More: values} }

// Each goal is met by the first sample of ours and missed by the second.
func TestGoalsOfTheOthers(t *testing.T) {
	const sixteenSets = "SET" + sixteen
	tests := []struct {
		name, program, side string
		cell                result.Cell
		others              map[string]result.Sample
		good, bad           result.Sample
	}{
		{"S4 spares Redis", "rate", longDelay, result.Cell{Command: "GET", Callers: 128, Rate: 4e4},
			map[string]result.Sample{"direct": {RedisCPU: 10}},
			result.Sample{RedisCPU: 1.5, ProxyCPU: 9}, result.Sample{RedisCPU: 2, ProxyCPU: 9}},
		{"S4 over the unix socket", "rate", unixDelay, result.Cell{Command: "GET", Callers: 128, Rate: 4e4},
			map[string]result.Sample{"direct": {RedisCPU: 10}},
			result.Sample{RedisCPU: 1, ProxyCPU: 8}, result.Sample{RedisCPU: 1, ProxyCPU: 8.5}},
		{"S5 adds a twentieth", "rate", autoDelay + "1ms", result.Cell{Command: "GET", Rate: 4e4, Trip: "1ms"},
			map[string]result.Sample{"direct:rtt=1ms": {P50: 1000}},
			result.Sample{P50: 1049}, result.Sample{P50: 1051}},
		{"S5 adds ten microseconds", "rate", autoDelay + "0s", result.Cell{Command: "GET", Rate: 4e4, Trip: "0s"},
			map[string]result.Sample{"direct:rtt=0s": {P50: 40}},
			result.Sample{P50: 49}, result.Sample{P50: 51}},
		{"S5 spares Redis as fixed delays do", "rate", autoDelay + "28ms", result.Cell{Command: "GET", Rate: 4e4, Trip: "28ms"},
			map[string]result.Sample{autoDelay + "28ms:max-flush-delay=0": {RedisCPU: 4}, autoDelay + "28ms:max-flush-delay=1ms": {RedisCPU: 2}},
			result.Sample{RedisCPU: 2.3}, result.Sample{RedisCPU: 2.5}},
		{"S7 throughput", "large", "streamproxy", result.Cell{Title: sixteenSets},
			map[string]result.Sample{"direct": more(map[string]float64{megabytes: 100})},
			more(map[string]float64{megabytes: 80}), more(map[string]float64{megabytes: 79})},
		{"S7 memory", "large", "streamproxy", result.Cell{Title: sixteenSets}, nil,
			more(map[string]float64{aboveIdle: 60}), more(map[string]float64{aboveIdle: 70})},
		{"S8 idle", "crowd", "streamproxy", result.Cell{Title: "crowd"}, nil,
			more(map[string]float64{perClient: 12, overIdle: 2}), more(map[string]float64{perClient: 13, overIdle: 1})},
		{"S8 after a burst", "crowd", "streamproxy", result.Cell{Title: "crowd"}, nil,
			more(map[string]float64{perClient: 12, overIdle: 2}), more(map[string]float64{perClient: 12, overIdle: 2.1})},
		{"S9 against direct", "wide", "streamproxy", result.Cell{Command: "MGET", Keys: 10_000},
			map[string]result.Sample{"direct": {P50: 100}}, result.Sample{P50: 120}, result.Sample{P50: 121}},
		{"S12", "metrics", "streamproxy", result.Cell{Command: "GET", Callers: 50, Pipeline: 16},
			map[string]result.Sample{unobserved: {ProxyCPU: 100}}, result.Sample{ProxyCPU: 103}, result.Sample{ProxyCPU: 104}},
	}
	for _, tt := range tests {
		for want, ours := range map[bool]result.Sample{true: tt.good, false: tt.bad} {
			samples := map[string]result.Sample{tt.side: ours}
			for side, s := range tt.others {
				samples[side] = s
			}
			verdicts := judge(compared(tt.program, tt.cell, samples))
			met := true
			for i := range verdicts {
				met = met && verdicts[i].met()
			}
			if len(verdicts) == 0 || met != want {
				t.Errorf("%s: met %v, want %v: %+v", tt.name, met, want, verdicts)
			}
		}
	}
}

// Goals that compare two cells of one report.
func TestGoalsBetweenCells(t *testing.T) {
	quiet := result.Cell{Title: alone}
	quiet.Add("streamproxy", more(map[string]float64{smallP99: 100}))
	loud := result.Cell{Title: beside + "512 MB"}
	loud.Add("streamproxy", more(map[string]float64{smallP99: 201, aboveIdle: 1}))
	few, many := result.Cell{Command: "MGET", Keys: 10_000}, result.Cell{Command: "MGET", Keys: 100_000}
	few.Add("streamproxy", result.Sample{P50: 100})
	many.Add("streamproxy", result.Sample{P50: 1300})
	for program, cells := range map[string][]result.Cell{"large": {quiet, loud}, "wide": {few, many}} {
		missed := 0
		verdicts := judge(&result.Report{Program: program, Cells: cells})
		for i := range verdicts {
			if !verdicts[i].met() {
				missed++
			}
		}
		if missed != 1 {
			t.Errorf("%s: %d missed, want 1: %+v", program, missed, verdicts)
		}
	}
}

func TestTripOfASide(t *testing.T) {
	for side, want := range map[string]string{"direct": "", "direct:rtt=28ms": "28ms", autoDelay + "1ms:max-flush-delay=0": "1ms", unixDelay: ""} {
		if got := trip(side); got != want {
			t.Errorf("%s: %q, want %q", side, got, want)
		}
	}
}

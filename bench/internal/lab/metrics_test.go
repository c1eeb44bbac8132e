package lab

import (
	"math"
	"strings"
	"testing"
)

const page = `# HELP wait what it is
# TYPE wait histogram
wait_bucket{le="0"} 80
wait_bucket{le="0.0001"} 90
wait_bucket{le="0.0002"} 100
wait_bucket{le="+Inf"} 100
wait_sum 0.01
wait_count 100
flushes_total{reason="delay"} 20
`

func TestMetrics(t *testing.T) {
	m, err := parseMetrics(strings.NewReader(page))
	if err != nil || m["wait_count"] != 100 || m[`flushes_total{reason="delay"}`] != 20 {
		t.Fatalf("%v, %v", m, err)
	}
	grown := m.Since(Metrics{"wait_count": 40})
	if grown["wait_count"] != 60 || grown["wait_sum"] != 0.01 {
		t.Errorf("grown %v", grown)
	}
	if _, err := parseMetrics(strings.NewReader("novalue\n")); err == nil {
		t.Error("a line without a value was accepted")
	}
}

func TestTopQuantile(t *testing.T) {
	m, err := parseMetrics(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ top, q, want float64 }{
		{20, 0.5, 0.0001},   // half of those that waited
		{20, 0.9, 0.00018},  // and nine tenths of them
		{100, 0.5, 0},       // of all, most did not wait
		{1000, 0.95, 15e-5}, // more than there are: all
	}
	for _, tt := range tests {
		if got, ok := m.TopQuantile("wait", tt.top, tt.q); !ok || math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("top %v, q %v: %v, want %v", tt.top, tt.q, got, tt.want)
		}
	}
	if _, ok := m.TopQuantile("nothing", 1, 0.5); ok {
		t.Error("a histogram that is not there has a quantile")
	}
	if _, ok := m.TopQuantile("wait", 0, 0.5); ok {
		t.Error("nobody has a quantile")
	}
}

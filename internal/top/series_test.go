package top

import (
	"slices"
	"testing"
)

const page = `# HELP streamproxy_client_commands_total Commands.
# TYPE streamproxy_client_commands_total counter
streamproxy_client_commands_total{class="blocking"} 10
streamproxy_client_commands_total{class="shared"} 1000
streamproxy_upstream_up 1
go_goroutines 12
streamproxy_broken
streamproxy_broken{a="b"} x
streamproxy_took_seconds_bucket{le="0.1"} 10
streamproxy_took_seconds_bucket{le="0.2"} 30
streamproxy_took_seconds_bucket{le="1"} 40
streamproxy_took_seconds_bucket{le="+Inf"} 50
streamproxy_took_seconds_sum 20
streamproxy_took_seconds_count 50
streamproxy_build_info{go_version="go1 x",version="v1"} 1
`

func TestSeries(t *testing.T) {
	s := parseSeries([]byte(page))
	if got := s.values("client_commands_total"); !slices.Equal(got, []string{"blocking", "shared"}) {
		t.Errorf("classes %q", got)
	}
	if s.sum("client_commands_total") != 1010 || s.at("client_commands_total", "class", "shared") != 1000 || s.sum("upstream_up") != 1 {
		t.Errorf("%v", s)
	}
	if len(s["goroutines"])+len(s["go_goroutines"])+len(s["broken"]) > 0 {
		t.Errorf("what is not ours, or no number, is there: %v", s)
	}
	if s.sum("build_info") != 1 {
		t.Error("a blank in a label hides a number")
	}
}

func TestHistograms(t *testing.T) {
	s := parseSeries([]byte(page))
	if mean, some := s.mean("took_seconds"); !some || mean != 0.4 {
		t.Errorf("mean %v, %v", mean, some)
	}
	for q, want := range map[float64]float64{0.1: 0.05, 0.2: 0.1, 0.5: 0.175, 0.8: 1, 0.99: 1} {
		if got, some := s.quantile("took_seconds", q); !some || got < want-1e-9 || got > want+1e-9 {
			t.Errorf("p%v is %v, %v; want %v", q, got, some, want)
		}
	}
	if _, some := s.mean("nothing"); some {
		t.Error("nothing has a mean")
	}
	if _, some := s.quantile("nothing", 0.5); some {
		t.Error("nothing has a median")
	}
}

// A proxy that was started again counts from 0.
func TestSince(t *testing.T) {
	before := series{"a": {"": 10}, "b": {"": 10}}
	now := series{"a": {"": 15}, "b": {"": 3}, "c": {"": 1}}
	grown := now.since(before)
	for name, want := range map[string]float64{"a": 5, "b": 3, "c": 1} {
		if got := grown.sum(name); got != want {
			t.Errorf("%s has grown by %v, want %v", name, got, want)
		}
	}
}

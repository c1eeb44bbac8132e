package result

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func series(ops ...float64) Series {
	s := Series{Side: "a"}
	for _, v := range ops {
		s.Rounds = append(s.Rounds, Sample{Ops: v})
	}
	return s
}

func TestMedianAndSpread(t *testing.T) {
	tests := []struct {
		ops            []float64
		median, spread float64
	}{
		{nil, 0, 0},
		{[]float64{5}, 5, 0},
		{[]float64{9, 1, 5}, 5, 1.6},
		{[]float64{4, 2, 8, 6}, 5, 1.2},
		{[]float64{0, 0, 0}, 0, 0},
	}
	for _, tt := range tests {
		s := series(tt.ops...)
		if got := s.Median(Ops); got != tt.median {
			t.Errorf("median of %v: %v, want %v", tt.ops, got, tt.median)
		}
		if got := s.Spread(Ops); math.Abs(got-tt.spread) > 1e-9 {
			t.Errorf("spread of %v: %v, want %v", tt.ops, got, tt.spread)
		}
	}
}

func sample() *Report {
	r := &Report{
		Program: "throughput",
		Started: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC),
		Sides:   []SideInfo{{Name: "direct", Kind: "direct"}, {Name: "a<b", Kind: "streamproxy", Command: "a --x"}},
		Missing: []string{"predixy"},
	}
	c := Cell{Command: "GET", Callers: 50, Pipeline: 1}
	c.Add("direct", Sample{Ops: 1000, P50: 40, RedisCPU: 7})
	c.Add("a<b", Sample{Ops: 900, P50: 50, RedisCPU: 1.5, ProxyCPU: 6, Batch: 12})
	c.Add("a<b", Sample{Ops: 1100, P50: 50, RedisCPU: 1.5, ProxyCPU: 6, Batch: 12})
	r.Cells = []Cell{c}
	return r
}

func TestSaveAndLoad(t *testing.T) {
	want := sample()
	path, err := want.Save(t.TempDir() + "/results")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read back %+v, %v", got, err)
	}
}

func TestMarkdown(t *testing.T) {
	var out strings.Builder
	sample().Markdown(&out)
	for _, want := range []string{
		"**GET C=50 P=1**",
		"| direct | 1000 | 0 % | 1.00 | 40 | 0 | 0 | – | 7.00 | 0.00 | – |",
		"| a<b | 1000 | 20 % | 1.00 | 50 | 0 | 0 | 6.00 | 1.50 | 0.00 | 12.0 |",
		"not installed, so not compared: predixy",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestChartIsWellFormed(t *testing.T) {
	picture := sample().Chart("ops & more", "/s", Ops)
	decoder := xml.NewDecoder(strings.NewReader(string(picture)))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
	}
	if !strings.Contains(string(picture), "a&lt;b") {
		t.Error("a side is missing")
	}
}

func TestCellName(t *testing.T) {
	c := Cell{Command: "SET", Callers: 1, Pipeline: 16, Idle: 1000, Rate: 40000}
	if got := c.Name(); got != "SET C=1 P=16 beside 1000 idle at 40000/s" {
		t.Error(got)
	}
}

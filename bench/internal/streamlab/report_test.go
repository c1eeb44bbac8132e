package streamlab

import (
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sample() *Report {
	r := &Report{Program: "streams", Measured: map[string]Measured{"rows": {Started: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)}}}
	for _, n := range []int{1, 161} {
		for _, side := range Sides {
			r.Rows = append(r.Rows, Row{Pair: "1.2.4+8", Side: side.Name, Streams: n, Arrivals: Steady,
				Latencies: []float64{31, 29, 30, 28}, Passes: []float64{2}, PerSecond: 3, Commands: Calls{"xadd": 4}})
		}
	}
	r.Bursts = []Burst{{Pair: "1.2.4+8", Side: floorSide, Messages: 80, Seconds: 1, Reads: 10}, {Pair: "1.2.4+8", Side: "streamproxy", Messages: 80, Seconds: 1.6, Reads: 11}}
	r.Colds = []Cold{{Pair: "1.2.4+8", Side: "streamproxy", Streams: 161, First: 30, Second: 200}, {Pair: "1.2.4+8", Side: "streamproxy", Streams: 161, First: 31, Second: 210}}
	r.Fleets = []Fleet{{Proxies: 1, PerInterval: 160}, {Proxies: 10, PerInterval: 176}}
	r.Recoveries = []Recovery{{Pair: "1.2.4+8", Queue: "idle", Entries: 9, Arrived: 9, CountedTwice: 9, Seconds: 14, BoundSeconds: 26}}
	return r
}

func TestQuantile(t *testing.T) {
	for _, tt := range []struct {
		values  []float64
		q, want float64
	}{
		{nil, 0.5, 0},
		{[]float64{7}, 0.95, 7},
		{[]float64{4, 1, 3, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.95, 4},
		{[]float64{5, 4, 3, 2, 1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 0.95, 19},
		{[]float64{1, 2}, 1, 2},
	} {
		if got := Quantile(tt.values, tt.q); got != tt.want {
			t.Errorf("%v of %v: %v, want %v", tt.q, tt.values, got, tt.want)
		}
	}
}

func TestSaveAndLoad(t *testing.T) {
	folder := t.TempDir() + "/results"
	empty, err := Load(folder)
	if err != nil || len(empty.Rows) > 0 || empty.Measured == nil {
		t.Errorf("without a file: %+v, %v", empty, err)
	}
	want := sample()
	if _, err := want.Save(folder); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(folder); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read back %+v, %v", got, err)
	}
}

func TestReplace(t *testing.T) {
	r := sample()
	r.Replace([]Row{
		{Pair: "1.2.4+8", Side: "direct", Streams: 161, Arrivals: Steady, PerSecond: 99},
		{Pair: "1.2.4+8", Side: "direct", Streams: 10, Arrivals: Steady, PerSecond: 98},
		{Pair: "1.2.4+8", Side: "direct", Streams: 161, Arrivals: Poisson, PerSecond: 97},
	})
	if len(r.Rows) != 8 {
		t.Fatalf("%d rows", len(r.Rows))
	}
	for i, want := range map[int]float64{3: 98, 4: 99, 7: 97} {
		if r.Rows[i].PerSecond != want {
			t.Errorf("row %d is %+v", i, r.Rows[i])
		}
	}
}

func TestMarkdown(t *testing.T) {
	var out strings.Builder
	sample().Markdown(&out)
	for _, want := range []string{
		"- rows: measured 2026-01-02 03:04 UTC",
		"| 1.2.4+8 | steady | 161 | streamproxy | 29.0 | 31.0 | 31.0 | 3.0 | 2.0 | 4 |",
		"| 1.2.4+8 | streamproxy | 80 | 1.6 | 0.0 | 11 | 1.3 | 1.25 |", // 1 s + 10 reads of 28 ms
		"| 1.2.4+8 | streamproxy | 30, 31 | 200, 210 |",
		"| 10 | 176 | 1.10 |",
		"| 1.2.4+8 | idle | 9 | 9 | 0 | 9 | 14.0 | 26 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	var none strings.Builder
	(&Report{}).Markdown(&none)
	if none.Len() > 0 {
		t.Errorf("nothing was measured and it says\n%s", none.String())
	}
}

func TestPictureIsWellFormed(t *testing.T) {
	for _, r := range []*Report{sample(), {}} {
		picture := r.Picture("1.2.4+8")
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
		if strings.Contains(string(picture), "NaN") || strings.Contains(string(picture), "Inf") {
			t.Errorf("a number is none in\n%s", picture)
		}
	}
	text := string(sample().Picture("1.2.4+8"))
	for _, want := range []string{"direct p50", "patched p95", "streamproxy p50", ">161<", "taskiq-redis 1.2.4, redis-py 8"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

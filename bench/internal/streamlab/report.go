package streamlab

import (
	"cmp"
	"slices"
	"time"

	"streamproxy/bench/internal/result"
)

// Report is everything that the experiments found. Parts that were measured at different times
// each have a Setup.
type Report struct {
	Program    string              `json:"program"`
	Measured   map[string]Measured `json:"measured"` // by part
	Rows       []Row               `json:"rows,omitempty"`
	Bursts     []Burst             `json:"bursts,omitempty"`
	Colds      []Cold              `json:"colds,omitempty"`
	Fleets     []Fleet             `json:"fleets,omitempty"`
	Recoveries []Recovery          `json:"recoveries,omitempty"`
}

// Measured says when and on what a part was measured.
type Measured struct {
	Started time.Time    `json:"started"`
	Setup   result.Setup `json:"setup"`
	// RealTime: everything ran with real-time scheduling (chrt --rr 1), so that other work on the
	// machine, of which there was some, did not come first.
	RealTime bool `json:"real_time,omitempty"`
}

// Row is one worker over a number of streams.
type Row struct {
	Pair      string    `json:"pair"` // a name of Pairs
	Side      string    `json:"side"`
	Streams   int       `json:"streams"`
	Arrivals  Arrivals  `json:"arrivals"`
	Latencies []float64 `json:"latencies"` // publish to yield, in milliseconds
	Passes    []float64 `json:"passes"`    // not reading before a read that found something, in milliseconds
	PerSecond float64   `json:"per_second"`
	Commands  Calls     `json:"commands"` // behind PerSecond
}

// Burst is many messages on one of many streams.
type Burst struct {
	Pair        string  `json:"pair"`
	Side        string  `json:"side"`
	Messages    int     `json:"messages"`
	Seconds     float64 `json:"seconds"` // until the last was yielded
	Reads       int     `json:"reads"`
	PassSeconds float64 `json:"pass_seconds"` // of Seconds, what the worker was not reading
}

// Cold is a worker's start.
type Cold struct {
	Pair    string  `json:"pair"`
	Side    string  `json:"side"`
	Streams int     `json:"streams"`
	First   float64 `json:"first"`  // listen() to the first message's yield, in milliseconds
	Second  float64 `json:"second"` // publish to yield of the next, sent at once: the first pass
}

// Fleet is a number of proxies with the same streams.
type Fleet struct {
	Pair        string  `json:"pair"`
	Proxies     int     `json:"proxies"`
	Streams     int     `json:"streams"`
	Span        float64 `json:"span"` // seconds
	Reclaim     int64   `json:"reclaim"`
	PerInterval float64 `json:"per_interval"`
	Commands    Calls   `json:"commands"`
}

// Recovery is a killed worker's entries.
type Recovery struct {
	Pair         string  `json:"pair"`
	Queue        string  `json:"queue"` // busy, idle
	Entries      int     `json:"entries"`
	Arrived      int     `json:"arrived"`
	Repeated     int     `json:"repeated"`      // arrived more than once
	CountedTwice int     `json:"counted_twice"` // delivery count 2 at the server
	Seconds      float64 `json:"seconds"`       // from the kill to the last arrival
	BoundSeconds float64 `json:"bound_seconds"`
}

// Quantile returns the q-quantile of the values, which it does not change: the smallest value that
// at least that part of them does not exceed; 0 without values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Find returns the row of a pair, side and number of streams, or nil.
func (r *Report) Find(pair, side string, streams int, arrivals Arrivals) *Row {
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Pair == pair && row.Side == side && row.Streams == streams && row.Arrivals == arrivals {
			return row
		}
	}
	return nil
}

// Replace puts rows in the place of those for the same number of streams and kind of arrivals.
func (r *Report) Replace(rows []Row) {
	for _, row := range rows {
		if old := r.Find(row.Pair, row.Side, row.Streams, row.Arrivals); old != nil {
			*old = row
		} else {
			r.Rows = append(r.Rows, row)
		}
	}
	slices.SortStableFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Arrivals, a.Arrivals), cmp.Compare(a.Pair, b.Pair), cmp.Compare(a.Streams, b.Streams))
	})
}

const fileName = "streams.json"

// Save writes the report into a folder.
func (r *Report) Save(folder string) (path string, err error) {
	return result.Write(folder, fileName, r)
}

// Load reads a folder's report, an empty one if there is none.
func Load(folder string) (*Report, error) {
	r := &Report{Program: "streams", Measured: map[string]Measured{}}
	if err := result.Read(folder, fileName, r); err != nil {
		return nil, err
	}
	return r, nil
}

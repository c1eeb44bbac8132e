// Package result holds what a benchmark found: samples in rounds, their medians and spreads, as
// JSON, as Markdown and as a picture.
package result

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Report is everything one run of a benchmark found, and all that is needed to judge it.
type Report struct {
	Program string     `json:"program"` // "throughput", "idle"
	Started time.Time  `json:"started"`
	Setup   Setup      `json:"setup"`
	Sides   []SideInfo `json:"sides"`
	Missing []string   `json:"missing,omitempty"` // peers that were not installed
	Cells   []Cell     `json:"cells"`
}

// Setup is the machine and the arguments.
type Setup struct {
	Revision   string `json:"revision"`
	Go         string `json:"go"`
	System     string `json:"system"`
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	GOMAXPROCS int    `json:"gomaxprocs"` // of the generator; a side's own is among its flags
	Flags      string `json:"flags"`
	Rounds     int    `json:"rounds"`
	Redis      string `json:"redis"`
}

// SideInfo says what a side was.
type SideInfo struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Command string `json:"command,omitempty"`
}

// Cell is one load, and what each side made of it.
type Cell struct {
	Title    string        `json:"title,omitempty"` // of a cell that the other fields do not describe
	Command  string        `json:"command"`         // "GET", "SET"
	Callers  int           `json:"callers"`
	Idle     int           `json:"idle,omitempty"` // connections beside the callers that say nothing
	Pipeline int           `json:"pipeline"`
	Rate     float64       `json:"rate,omitempty"` // commands a second; 0: as fast as replies return
	Tick     time.Duration `json:"tick,omitempty"` // nanoseconds between bursts at a rate; 0: 1 ms
	Keys     int           `json:"keys,omitempty"` // of an MGET
	Trip     string        `json:"trip,omitempty"` // round trip to the server of the sides measured, as in their names
	Series   []Series      `json:"series"`
}

// Name is the cell's name in tables.
func (c *Cell) Name() string {
	if c.Title != "" {
		return c.Title
	}
	name := fmt.Sprintf("%s C=%d P=%d", c.Command, c.Callers, c.Pipeline)
	if c.Idle > 0 {
		name += fmt.Sprintf(" beside %d idle", c.Idle)
	}
	if c.Keys > 0 {
		name = fmt.Sprintf("%s of %d keys", c.Command, c.Keys)
	}
	if c.Rate > 0 {
		name += fmt.Sprintf(" at %.0f/s", c.Rate)
	}
	if c.Trip != "" {
		name += fmt.Sprintf(", round trip %s", c.Trip)
	}
	return name
}

// Series is what one side did in each round.
type Series struct {
	Side   string   `json:"side"`
	Rounds []Sample `json:"rounds"`
}

// Sample is one round. Times are microseconds, processor times microseconds per command.
type Sample struct {
	Ops       float64 `json:"ops"` // commands per second
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
	P999      float64 `json:"p999"`
	RedisCPU  float64 `json:"redis_cpu"`
	ProxyCPU  float64 `json:"proxy_cpu"`
	ClientCPU float64 `json:"client_cpu"`
	Batch     float64 `json:"batch,omitempty"`    // commands per write to the server, 0 if not known
	WaitP90   float64 `json:"wait_p90,omitempty"` // of the batches that waited, 0 if none did
	// More is what else one benchmark measures, by names that say the unit. They are columns
	// of its tables.
	More map[string]float64 `json:"more,omitempty"`
}

// Of returns the series of a side, or nil if it was not measured in this cell.
func (c *Cell) Of(side string) *Series {
	for i := range c.Series {
		if c.Series[i].Side == side {
			return &c.Series[i]
		}
	}
	return nil
}

// Add appends a round to a side's series, which it begins if there is none.
func (c *Cell) Add(side string, s Sample) {
	if series := c.Of(side); series != nil {
		series.Rounds = append(series.Rounds, s)
		return
	}
	c.Series = append(c.Series, Series{Side: side, Rounds: []Sample{s}})
}

// Median returns the median of one quantity over the rounds, 0 without rounds.
func (s *Series) Median(of func(Sample) float64) float64 {
	values := s.sorted(of)
	n := len(values)
	if n == 0 {
		return 0
	}
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

// Spread returns the distance between the smallest and the largest round as a part of the
// median: 0.1 means that the rounds lie within a tenth. It is 0 if the median is.
func (s *Series) Spread(of func(Sample) float64) float64 {
	median := s.Median(of)
	if median == 0 {
		return 0
	}
	values := s.sorted(of)
	return (values[len(values)-1] - values[0]) / median
}

func (s *Series) sorted(of func(Sample) float64) []float64 {
	var values []float64
	for _, sample := range s.Rounds {
		values = append(values, of(sample))
	}
	slices.Sort(values)
	return values
}

// Save writes the report as <folder>/<program>.json.
func (r *Report) Save(folder string) (path string, err error) {
	return Write(folder, r.Program+".json", r)
}

// Load reads a report back.
func Load(path string) (*Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

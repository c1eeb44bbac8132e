package neighbourlab

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Waits is how long one neighbour's work took, in milliseconds.
type Waits struct {
	Count  int64   `json:"count"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
	Errors int64   `json:"errors"`
	Fault  string  `json:"fault,omitempty"` // the first error
}

// Heard is what the neighbours' process tells: the waits by neighbour, under attack and afterwards.
type Heard struct {
	Under map[string]Waits `json:"under"`
	After map[string]Waits `json:"after"`
}

// check returns an error if some neighbour is missing, or was not there: what nobody measured is
// not to be taken for what nobody waited.
func (h *Heard) check() error {
	var faults []error
	for _, n := range neighbours {
		if h.Under[n.name].Count == 0 {
			faults = append(faults, fmt.Errorf("nothing is known of the neighbour %q under attack", n.name))
		}
		if h.After[n.name].Count == 0 {
			faults = append(faults, fmt.Errorf("nothing is known of the neighbour %q afterwards", n.name))
		}
	}
	return errors.Join(faults...)
}

// phase is a part of a measurement.
type phase int

const (
	warmup phase = iota
	under
	afterwards
	over
	phases
)

// schedule says when the phases began, as told from outside.
type schedule struct {
	start time.Time
	began [phases]atomic.Int64 // since start; 0: not yet
}

func newSchedule() *schedule { return &schedule{start: time.Now()} }

func (s *schedule) now() time.Duration { return time.Since(s.start) }

// enter begins a phase.
func (s *schedule) enter(p phase) { s.began[p].Store(int64(s.now())) }

// phase is the one in which a moment lies.
func (s *schedule) phase(at time.Duration) phase {
	for p := over; p > warmup; p-- {
		if began := s.began[p].Load(); began > 0 && int64(at) >= began {
			return p
		}
	}
	return warmup
}

// over says whether the schedule has ended.
func (s *schedule) over() bool { return s.began[over].Load() > 0 }

// tally collects the waits of one neighbour.
type tally struct {
	waited [phases]*hdrhistogram.Histogram
	errors [phases]int64
	fault  [phases]string
}

// Histogram bounds: 1 µs to 60 s with three digits.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Minute)
	digits   = 3
)

func newTally() *tally {
	t := &tally{}
	for p := range t.waited {
		t.waited[p] = hdrhistogram.New(shortest, longest, digits)
	}
	return t
}

// add takes in one wait. One that ended with an error counts as well: it may have been a long one.
// A long wait counts for those too who would have come in the meantime, one each interval, in the
// phase in which they would have: the neighbour itself waits and sends nothing, so that a stall
// would be one among thousands.
func (t *tally) add(s *schedule, began, ended, interval time.Duration, err error) {
	for at := began; at == began || at < ended; at += interval {
		wait := min(max(int64(ended-at), shortest), longest)
		_ = t.waited[s.phase(at)].RecordValue(wait) // it is within the bounds
	}
	if err != nil {
		p := s.phase(began)
		if t.errors[p] == 0 {
			t.fault[p] = err.Error()
		}
		t.errors[p]++
	}
}

func (t *tally) waits(p phase) Waits {
	h := t.waited[p]
	millis := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e6 }
	return Waits{Count: h.TotalCount(), P50: millis(50), P99: millis(99), Max: millis(100), Errors: t.errors[p], Fault: t.fault[p]}
}

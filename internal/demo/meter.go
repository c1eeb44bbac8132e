package demo

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"streamproxy/batcher"
)

// flushReason keeps the signature of the proxy's event readable here.
type flushReason = batcher.FlushReason

// Latencies are kept in microseconds, from 1 µs to a minute, to three digits: far
// finer than any figure shown.
const (
	longest = int64(time.Minute / time.Microsecond)
	digits  = 3
)

// meter counts one side. Its methods are safe for concurrent use.
type meter struct {
	writes atomic.Int64 // to the server
	asked  atomic.Int64 // commands sent, answered or not

	mu          sync.Mutex
	all, latest counts
	seen, start counts // what the counters were when latest and all began
}

// counts is what was counted in a span of time.
type counts struct {
	writes, asked int64
	latency       *hdrhistogram.Histogram // one value a command that was answered
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, digits) }

// wrote counts one write to the server.
func (m *meter) wrote() { m.writes.Add(1) }

// answered counts a command and how long its reply took.
func (m *meter) answered(took time.Duration) {
	v := min(max(int64(took/time.Microsecond), 1), longest)
	m.mu.Lock()
	defer m.mu.Unlock()
	// The bounds above are the histograms' own, so neither refuses.
	_ = m.all.latency.RecordValue(v)
	_ = m.latest.latency.RecordValue(v)
}

// reset forgets everything.
func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.start = m.counters()
	m.seen = m.start
	m.all.latency, m.latest.latency = newHistogram(), newHistogram()
}

// total returns the counts since reset.
func (m *meter) total() counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	latency := newHistogram()
	latency.Merge(m.all.latency)
	c := m.since(m.start)
	c.latency = latency
	return c
}

// recent returns the counts since the last recent, or reset.
func (m *meter) recent() counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.since(m.seen)
	c.latency = m.latest.latency
	m.seen = counts{writes: m.seen.writes + c.writes, asked: m.seen.asked + c.asked}
	m.latest.latency = newHistogram()
	return c
}

func (m *meter) counters() counts {
	return counts{writes: m.writes.Load(), asked: m.asked.Load()}
}

func (m *meter) since(before counts) counts {
	now := m.counters()
	return counts{writes: now.writes - before.writes, asked: now.asked - before.asked}
}

// quantile returns the latency that percent of the commands did not exceed.
func quantile(c counts, percent float64) time.Duration {
	return time.Duration(c.latency.ValueAtQuantile(percent)) * time.Microsecond
}

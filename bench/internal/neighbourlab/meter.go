package neighbourlab

import (
	"context"
	"time"

	"streamproxy/bench/internal/proc"
)

// meterEvery is the pause between two looks at a process.
const meterEvery = 100 * time.Millisecond

// meter looks at what a process holds.
type meter struct {
	pid         int
	rss         int64 // bytes, the most seen
	descriptors int   // the most seen
	err         error
}

// watch looks until ctx ends.
func (m *meter) watch(ctx context.Context) {
	tick := time.NewTicker(meterEvery)
	defer tick.Stop()
	for m.look(); m.err == nil; m.look() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (m *meter) look() {
	rss, err := proc.RSS(m.pid)
	if err != nil {
		m.err = err
		return
	}
	descriptors, err := proc.Descriptors(m.pid)
	if err != nil {
		m.err = err
		return
	}
	m.rss, m.descriptors = max(m.rss, rss), max(m.descriptors, descriptors)
}

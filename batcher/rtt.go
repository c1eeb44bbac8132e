package batcher

import "time"

const (
	// rttWindowLength is how long a round-trip sample counts.
	rttWindowLength = 10 * time.Second
	// rttSlots divides the window: a sample leaves at most a slot's length early.
	rttSlots = 20
	rttSlot  = int64(rttWindowLength / rttSlots)
)

// rttWindow keeps the smallest round trip of the last ten seconds in constant
// memory: one minimum for each half second. The smallest, because every larger
// sample is the same path plus somebody's queue.
type rttWindow struct {
	slots [rttSlots]time.Duration // 0: no sample
	// newest is the number of the half second that the latest sample fell into.
	newest int64
	least  time.Duration
}

// add takes one positive sample. A clock that steps back counts as standing still.
func (w *rttWindow) add(now int64, rtt time.Duration) {
	slot := max(now/rttSlot, w.newest)
	if slot != w.newest {
		w.advance(slot)
	}
	at := &w.slots[slot%rttSlots]
	if *at == 0 || rtt < *at {
		*at = rtt
	}
	if w.least == 0 || rtt < w.least {
		w.least = rtt
	}
}

// advance empties the slots that were not reached until now and looks for the
// minimum of what is left.
func (w *rttWindow) advance(slot int64) {
	if slot-w.newest >= rttSlots {
		w.slots = [rttSlots]time.Duration{}
	} else {
		for s := w.newest + 1; s <= slot; s++ {
			w.slots[s%rttSlots] = 0
		}
	}
	w.newest, w.least = slot, 0
	for _, d := range w.slots {
		if d != 0 && (w.least == 0 || d < w.least) {
			w.least = d
		}
	}
}

// min returns the smallest sample in the window as of the latest one, 0 before
// the first.
func (w *rttWindow) min() time.Duration { return w.least }

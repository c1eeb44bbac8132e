// Package heap measures the process's memory, and gives memory back after a burst.
//
// The runtime collects when allocations call for it. A proxy that has just been busy allocates
// next to nothing: what the burst needed would stay resident until the collection that the runtime
// forces every two minutes, and a supervisor that looks at resident memory would see a leak. So a
// burst that is over is followed by a few collections. An idle process costs a look at three counters
// now and then.
package heap

import (
	"context"
	"runtime"
	"runtime/metrics"
	"time"
)

// every is the pause between two looks, and between two collections.
const every = 2 * time.Second

// Keep gives memory back until ctx ends. held estimates how many bytes are in use for what comes
// and goes: when that falls a collection is worth while, though nothing is allocated then.
func Keep(ctx context.Context, held func() int64) {
	keep(ctx, func() sample { return look(held()) }, runtime.GC)
}

func keep(ctx context.Context, look func() sample, collect func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var k keeper
	for {
		if k.step(look()) {
			collect()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look reads the runtime's counters.
func look(held int64) sample {
	values := [...]metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(values[:])
	return sample{
		resident:  int64(values[0].Value.Uint64() - values[1].Value.Uint64()),
		allocated: int64(values[2].Value.Uint64()),
		held:      held,
	}
}

package streamlab

import (
	"context"
	"fmt"
	"time"
)

// burstStreams is what a worker reads of which one stream has the burst.
const burstStreams = ManyStreams

// burstLimit bounds one burst.
const burstLimit = 10 * time.Minute

// floorSide is the worker on a server without distance: what the worker itself needs.
const floorSide = "no distance"

// Bursts measures, for each pair in turn, how long a burst on one stream of many takes: without
// distance, patched, and through the proxy. The sides run one after the other, because a burst
// keeps its worker's processor busy. A direct worker over the link is left out: it would need a
// pass of seconds for every eight messages.
func (l *Lab) Bursts(ctx context.Context) ([]Burst, error) {
	var all []Burst
	for _, pair := range l.pairs() {
		for _, side := range []struct {
			Side
			delay time.Duration
		}{{Side{Name: floorSide}, 0}, {Sides[1], Delay}, {Sides[2], Delay}} {
			b, err := l.burst(ctx, pair, &side.Side, side.delay)
			if err != nil {
				return nil, fmt.Errorf("burst, %s, %s: %w", pair, side.Name, err)
			}
			all = append(all, b)
		}
	}
	return all, nil
}

func (l *Lab) burst(ctx context.Context, pair string, side *Side, delay time.Duration) (Burst, error) {
	b := Burst{Pair: pair, Side: side.Name, Messages: l.Burst}
	n, err := l.openRig(pair, side, burstStreams, delay)
	defer n.close()
	if err != nil {
		return b, err
	}
	if err := n.firstPass(ctx); err != nil {
		return b, err
	}
	ctx, cancel := context.WithTimeout(ctx, burstLimit)
	defer cancel()
	reads := len(n.worker.snapshot().reads)
	if err := n.publisher.flood("stream-7", l.Burst); err != nil {
		return b, err
	}
	want := l.Burst + n.warm
	if err := n.worker.wait(ctx, func(t *told) bool { return len(t.arrivals) >= want }); err != nil {
		return b, err
	}
	t := n.worker.snapshot()
	last := t.arrivals[len(t.arrivals)-1]
	b.Seconds = (last.at - n.publisher.sent[last.payload]).Seconds()
	b.Reads = len(t.reads) - reads
	var passes time.Duration
	for _, r := range t.reads[reads:] {
		passes += r.pass
	}
	b.PassSeconds = passes.Seconds()
	return b, nil
}

package streamlab

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// coldStreams is how many streams a starting worker has.
const coldStreams = ManyStreams

// ColdStarts measures what the first two messages after a worker's start meet: the first the
// first read, the second the first pass. All sides start at once, each with a server and a proxy
// that have not seen a worker before.
func (l *Lab) ColdStarts(ctx context.Context, rounds int) ([]Cold, error) {
	var all []Cold
	for range rounds {
		round, err := l.coldRound(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, round...)
	}
	return all, nil
}

func (l *Lab) coldRound(ctx context.Context) ([]Cold, error) {
	var rigs []*rig
	defer func() { closeAll(rigs) }()
	for _, pair := range l.pairs() {
		for i := range Sides {
			n, err := l.openRig(pair, &Sides[i], coldStreams, Delay)
			rigs = append(rigs, n)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", pair, Sides[i].Name, err)
			}
		}
	}
	colds := make([]Cold, len(rigs))
	g, ctx := errgroup.WithContext(ctx)
	for i, n := range rigs {
		g.Go(func() (err error) {
			if colds[i], err = n.cold(ctx); err != nil {
				return fmt.Errorf("cold start, %s, %s: %w", n.pair, n.side, err)
			}
			return nil
		})
	}
	return colds, g.Wait()
}

// cold sends a message as soon as the worker listens, and the next as soon as that has arrived.
func (n *rig) cold(ctx context.Context) (Cold, error) {
	c := Cold{Pair: n.pair, Side: n.side, Streams: coldStreams}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := n.worker.wait(ctx, func(t *told) bool { return t.listening > 0 }); err != nil {
		return c, err
	}
	for i := range 2 {
		if err := n.publisher.publish(fmt.Sprint("stream-", 100+i), fmt.Sprint("cold-", i)); err != nil {
			return c, err
		}
		if err := n.worker.wait(ctx, func(t *told) bool { return len(t.arrivals) > i }); err != nil {
			return c, err
		}
	}
	t := n.worker.snapshot()
	c.First = milliseconds(t.arrivals[0].at - t.listening)
	c.Second = milliseconds(t.arrivals[1].at - n.publisher.sent["cold-1"])
	return c, nil
}

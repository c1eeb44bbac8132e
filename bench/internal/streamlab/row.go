package streamlab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
)

// Arrivals says how a row's messages come.
type Arrivals string

// Steady messages come a gap apart; Poisson ones come at random, about as often.
const (
	Steady  Arrivals = "steady"
	Poisson Arrivals = "poisson"
)

// longestGap cuts random gaps off below redis-py 8's socket timeout, see firstScan.
const longestGap = 4 * time.Second

// startLimit bounds the time until a worker has made its first pass, drainLimit that until the
// last message has arrived: a direct pass of 161 streams takes 18 s.
const (
	startLimit = 120 * time.Second
	drainLimit = 120 * time.Second
)

// Rows measures every pair and side over a number of streams, and each pair's reference, all at
// the same time.
func (l *Lab) Rows(ctx context.Context, streams int, arrivals Arrivals) ([]Row, error) {
	var rigs []*rig
	defer func() { closeAll(rigs) }()
	for _, pair := range l.pairs() {
		n, err := l.openRig(pair, &Reference, 1, Delay)
		rigs = append(rigs, n)
		for i := 0; i < len(Sides) && err == nil; i++ {
			n, err = l.openRig(pair, &Sides[i], streams, Delay)
			rigs = append(rigs, n)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", pair, n.side, err)
		}
	}
	rows := make([]Row, len(rigs))
	g, ctx := errgroup.WithContext(ctx)
	for i, n := range rigs {
		phase := l.Gap * time.Duration(i) / time.Duration(len(rigs))
		g.Go(func() error {
			row, err := n.row(ctx, l, streams, arrivals, phase)
			if err != nil {
				return fmt.Errorf("%s, %s, %d streams: %w", n.pair, n.side, streams, err)
			}
			rows[i] = row
			return nil
		})
	}
	return rows, g.Wait()
}

// row measures one rig: after the worker's first pass, messages at its own phase of the gap, so
// that the sides' messages do not meet.
func (n *rig) row(ctx context.Context, l *Lab, streams int, arrivals Arrivals, phase time.Duration) (Row, error) {
	row := Row{Pair: n.pair, Side: n.side, Streams: streams, Arrivals: arrivals}
	if err := n.firstPass(ctx); err != nil {
		return row, fmt.Errorf("first pass: %w", err)
	}
	if err := n.firstScan(ctx); err != nil {
		return row, fmt.Errorf("first scan: %w", err)
	}
	before, err := readCalls(n.stand.direct)
	if err != nil {
		return row, err
	}
	first := now()
	at := first - first%l.Gap + l.Gap + phase
	random := rand.New(rand.NewPCG(uint64(streams), 699)) // the same for every side
	for i := range l.Messages {
		if err := until(ctx, at); err != nil {
			return row, err
		}
		if err := n.publisher.publish(fmt.Sprint("stream-", random.IntN(n.streams)), fmt.Sprint("message-", i)); err != nil {
			return row, err
		}
		next := l.Gap
		if arrivals == Poisson {
			next = min(time.Duration(random.ExpFloat64()*float64(l.Gap)), longestGap)
		}
		at += next
	}
	// The span has a fixed length, so that each side's scans fall into it as often.
	if err := until(ctx, first+l.Gap*time.Duration(l.Messages)); err != nil {
		return row, err
	}
	after, err := readCalls(n.stand.direct)
	if err != nil {
		return row, err
	}
	span := now() - first
	row.Commands = after.since(before)
	row.PerSecond = float64(row.Commands.Total()) / span.Seconds()
	return row, n.latencies(ctx, &row, first)
}

// firstPass sends two messages, one after the other: when the second arrives, the worker has made
// the pass that followed the first.
func (n *rig) firstPass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := n.worker.wait(ctx, func(t *told) bool { return t.listening > 0 }); err != nil {
		return err
	}
	for _, payload := range []string{"first", "second"} {
		if err := n.uncounted(ctx, payload); err != nil {
			return err
		}
	}
	return nil
}

// firstScan waits for the end of the side's first scan in the background, if it has any: what it
// asks once is no part of the rate, and spans that begin there hold as many scans on every side.
// Meanwhile messages keep coming, because redis-py 8 gives up on a read that is as long as its
// socket timeout of 5 s, which is the experiment's xread_block.
func (n *rig) firstScan(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for n.scan != "" {
		if err := n.uncounted(ctx, "scan"); err != nil {
			return err
		}
		calls, err := readCalls(n.stand.direct)
		if err != nil {
			return err
		}
		if calls[n.scan] >= int64(n.streams) {
			break
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return pause(ctx, time.Second) // until it has ended, and its end was stored
}

// uncounted sends a message that is no part of any figure, and waits until it has arrived.
func (n *rig) uncounted(ctx context.Context, payload string) error {
	before := len(n.worker.snapshot().arrivals)
	if err := n.publisher.publish("stream-0", payload); err != nil {
		return err
	}
	delete(n.publisher.sent, payload)
	n.warm++
	return n.worker.wait(ctx, func(t *told) bool { return len(t.arrivals) > before })
}

// latencies waits for the messages that are still on their way and fills in the row.
func (n *rig) latencies(ctx context.Context, row *Row, since time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	want := len(n.publisher.sent) + n.warm
	if err := n.worker.wait(ctx, func(t *told) bool { return len(t.arrivals) >= want }); err != nil {
		return err
	}
	t := n.worker.snapshot()
	for _, a := range t.arrivals {
		if sent, ok := n.publisher.sent[a.payload]; ok {
			row.Latencies = append(row.Latencies, milliseconds(a.at-sent))
			delete(n.publisher.sent, a.payload)
		}
	}
	for _, r := range t.reads {
		if r.at > since && r.entries > 0 {
			row.Passes = append(row.Passes, milliseconds(r.pass))
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

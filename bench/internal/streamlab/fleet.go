package streamlab

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// fleetStreams is what every worker of a fleet reads.
const fleetStreams = ManyStreams

// Interval is the proxy's default --reclaim-interval.
const Interval = 30 * time.Second

// traffic is what a fleet's server is asked that is no reclaim: messages, and connections.
var traffic = []string{
	"xreadgroup", "xadd", "xack", "xgroup|create", "hello", "auth", "ping", "select", "command", "info",
	"client|setinfo", "client|setname", "client|id", "config|get",
}

// Fleets counts what proxies with the same streams ask a server for reclaim, each with one
// worker of the last pair. All sizes run at the same time.
func (l *Lab) Fleets(ctx context.Context, sizes []int, span time.Duration) ([]Fleet, error) {
	pairs := l.pairs()
	fleets := make([]Fleet, len(sizes))
	g, ctx := errgroup.WithContext(ctx)
	for i, size := range sizes {
		g.Go(func() (err error) {
			if fleets[i], err = l.fleet(ctx, pairs[len(pairs)-1], size, span); err != nil {
				return fmt.Errorf("fleet of %d: %w", size, err)
			}
			return nil
		})
	}
	return fleets, g.Wait()
}

func (l *Lab) fleet(ctx context.Context, pair string, size int, span time.Duration) (Fleet, error) {
	f := Fleet{Pair: pair, Proxies: size, Streams: fleetStreams, Span: span.Seconds()}
	s, err := openStand(l.Binary, Delay, size)
	defer s.close()
	if err != nil {
		return f, err
	}
	for i := range size {
		job := newJob(s.urls[i], fleetStreams)
		job.Consumer, job.Block = fmt.Sprint("c", i), idleBlock.Milliseconds()
		if _, err := s.start(l.Pythons[pair], &job); err != nil {
			return f, err
		}
	}
	p, err := newPublisher(s.link.Addr())
	if err != nil {
		return f, err
	}
	defer p.close()
	ctx, cancel := context.WithTimeout(ctx, 2*startLimit+span)
	defer cancel()
	if err := s.busy(ctx, p, 100*time.Millisecond, func() bool { return s.everybodyPassed() }); err != nil {
		return f, err
	}
	// What is asked once in a proxy's life, or in many rounds, is no part of the rate.
	if err := s.busy(ctx, p, time.Second, func() bool { return s.scanned(Sides[2].scan, fleetStreams) }); err != nil {
		return f, err
	}
	before, err := readCalls(s.direct)
	if err != nil {
		return f, err
	}
	end := now() + span
	if err := s.busy(ctx, p, time.Second, func() bool { return now() >= end }); err != nil {
		return f, err
	}
	after, err := readCalls(s.direct)
	f.Commands = after.since(before)
	f.Reclaim = f.Commands.Total(traffic...)
	f.PerInterval = float64(f.Reclaim) / span.Seconds() * Interval.Seconds()
	return f, err
}

// scanned reports whether a first scan is over, by its command. A server that does not answer shows
// in the reading that follows.
func (s *stand) scanned(command string, streams int) bool {
	calls, err := readCalls(s.direct)
	return err != nil || calls[command] >= int64(streams)
}

// everybodyPassed reports whether each worker has got a message and has read again after it, in
// between which it has asked for abandoned entries.
func (s *stand) everybodyPassed() bool {
	for _, w := range s.workers {
		t := w.snapshot()
		if len(t.arrivals) == 0 || t.reads[len(t.reads)-1].at <= t.arrivals[0].at {
			return false
		}
	}
	return true
}

// busy publishes a message every so often until it is done, or a worker ends.
func (s *stand) busy(ctx context.Context, p *publisher, every time.Duration, done func() bool) error {
	for i := 0; !done(); i++ {
		if err := p.publish(fmt.Sprint("stream-", i%fleetStreams), fmt.Sprint("busy-", i)); err != nil {
			return err
		}
		for _, w := range s.workers {
			select {
			case <-w.ended:
				return w.fault
			default:
			}
		}
		if err := pause(ctx, every); err != nil {
			return err
		}
	}
	return nil
}

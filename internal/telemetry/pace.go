package telemetry

import (
	"context"
	"time"
)

const (
	// pauseTimes is how many times as long as a page took nobody gets another: together they
	// take a tenth of one processor at most.
	pauseTimes = 9
	// maxPause bounds that, for what takes long without being dear.
	maxPause = time.Second
)

// pace has pages that cost something made one at a time, in the order in which they were asked for,
// with pauses between them. The processor is that of the data path, and whoever reaches a site
// could have had all of it.
type pace struct {
	turn chan struct{} // holds one while somebody has the turn
	next time.Time     // when the pause ends; belongs to who has the turn
}

func newPace() *pace { return &pace{turn: make(chan struct{}, 1)} }

// enter waits for the turn, which ends with leave.
func (p *pace) enter(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryEnter is enter without waiting.
func (p *pace) tryEnter() bool {
	select {
	case p.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p *pace) leave() { <-p.turn }

// do waits for the end of the pause, and calls f. The caller has the turn.
func (p *pace) do(ctx context.Context, f func()) error {
	if err := sleepUntil(ctx, p.next); err != nil {
		return err
	}
	began := time.Now()
	defer func() { p.next = time.Now().Add(min(pauseTimes*time.Since(began), maxPause)) }()
	f()
	return nil
}

// sleepUntil waits, unless ctx ends before.
func sleepUntil(ctx context.Context, at time.Time) error {
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

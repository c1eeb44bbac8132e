package upstream

import (
	"math/rand/v2"
	"time"
)

// Backoff spaces attempts to reach a server that is away. Many proxies lose
// the same server at the same instant, so each delay is drawn anew from the
// whole range up to a doubling ceiling; the floor keeps an unlucky draw from
// becoming a busy loop.
type Backoff struct {
	// Min is the shortest delay, Max the longest.
	Min, Max time.Duration
	// Rand draws from [0, 1); nil is the runtime's own source.
	Rand func() float64
}

// DefaultBackoff is 10 to 500 ms.
func DefaultBackoff() Backoff {
	return Backoff{Min: 10 * time.Millisecond, Max: 500 * time.Millisecond}
}

// Delay returns how long to wait after failed attempts have failed in a row,
// 1 being the first: uniform between Min and min(Max, Min * 2^failed).
func (b Backoff) Delay(failed int) time.Duration {
	ceiling := b.Min
	for range failed {
		if ceiling >= b.Max/2 {
			ceiling = b.Max
			break
		}
		ceiling *= 2
	}
	draw := b.Rand
	if draw == nil {
		draw = rand.Float64
	}
	return b.Min + time.Duration(draw()*float64(max(ceiling-b.Min, 0)))
}

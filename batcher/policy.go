package batcher

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// This file decides when a batch leaves. It is arithmetic over what the lane
// tells it: no clock, no goroutine, no lock.
//
// Invariants, each held by a test:
//
//  1. With nothing in flight a batch never waits (design promise P7).
//  2. A batch waits at most D, counted from its first command. Later commands
//     never push that moment back, and neither does a D that grows meanwhile.
//  3. A batch waits only while somebody is there who may still add to it: a
//     session that sent lately and is not itself waiting for a reply. A lone
//     sequential caller therefore never waits, whatever D is.
//  4. D never passes what was configured; chosen automatically it is at most
//     5 % of the round trip and at most 1 ms.
//
// Rejected: pausing for D after each flush, or inside the writer's loop. It is
// the obvious way to save system calls, but it delays everybody alike. A
// caller that is alone pays D on each round trip, for a batch of one, and
// whoever arrives just after a flush pays all of it although the connection is
// free. Waiting is worth it only when the rules above expect company.

const (
	// autoShare is the part of a round trip that the automatic delay may spend.
	autoShare = 20
	// maxAutoDelay caps the automatic delay on links however slow.
	maxAutoDelay = time.Millisecond
	// maxFixedDelay is the largest delay that may be configured: more than a
	// second is a mistaken unit.
	maxFixedDelay = time.Second
	// maxFlushBytes and maxFlushCommands bound the caps themselves, because a
	// batch is held in memory and written in one piece.
	maxFlushBytes    = 64 << 20
	maxFlushCommands = 1 << 20
	// rateMemory is how many delays back the arrival rate remembers: long enough
	// to tell a trickle from a stream, short enough to notice a burst.
	rateMemory = 4
	// activeRoundTrips and minActiveWindow say how recently a session must have
	// sent to count as active: a caller in a loop is back within a few round trips.
	activeRoundTrips = 4
	minActiveWindow  = 10 * time.Millisecond
)

// PolicyConfig sets the flush policy of a lane. Start from DefaultPolicyConfig.
type PolicyConfig struct {
	// Auto derives the delay from the measured round trip: 5 % of it, at most
	// 1 ms. Delay must be zero then.
	Auto bool
	// Delay is the longest time a batch may wait, 0 to 1 s. Zero still batches what
	// arrives while a write is under way. A delay shorter than the platform's timer
	// can keep (20 µs on Linux, 1 ms elsewhere) counts as zero.
	Delay time.Duration
	// MaxBytes and MaxCommands end the wait of a batch that reaches either; bounds
	// 1 to 64 MiB and 1 to 1,048,576. A batch may exceed them by its last chunk.
	MaxBytes, MaxCommands int
}

// DefaultPolicyConfig returns the automatic delay with batches up to 64 KiB or
// 1,024 commands.
func DefaultPolicyConfig() PolicyConfig {
	return PolicyConfig{Auto: true, MaxBytes: 64 << 10, MaxCommands: 1024}
}

// Validate reports every fault of the configuration, joined.
func (c PolicyConfig) Validate() error {
	var faults []error
	if c.Delay < 0 || c.Delay > maxFixedDelay {
		faults = append(faults, fmt.Errorf("flush delay %v: must be between 0 and %v", c.Delay, maxFixedDelay))
	}
	if c.Auto && c.Delay != 0 {
		faults = append(faults, fmt.Errorf("flush delay %v: must be 0 when it is chosen automatically", c.Delay))
	}
	if c.MaxBytes < 1 || c.MaxBytes > maxFlushBytes {
		faults = append(faults, fmt.Errorf("flush max bytes %d: must be between 1 and %d", c.MaxBytes, maxFlushBytes))
	}
	if c.MaxCommands < 1 || c.MaxCommands > maxFlushCommands {
		faults = append(faults, fmt.Errorf("flush max commands %d: must be between 1 and %d", c.MaxCommands, maxFlushCommands))
	}
	return errors.Join(faults...)
}

// State is what a decision looks at. Times are nanoseconds of one monotonic clock.
type State struct {
	// Now is the present; FirstQueued is when the oldest command of the batch came.
	Now, FirstQueued int64
	// Commands and Bytes measure the batch.
	Commands, Bytes int
	// InFlight counts commands written upstream and not yet answered.
	InFlight int
	// IdleActive counts recently active sessions that may send at any moment: those
	// that are not waiting for a reply (see Activity). A session with a command in
	// this batch is waiting, unless it is one that sends without waiting.
	IdleActive int
}

// Decision is the policy's answer: send now and why, or wait until At.
type Decision struct {
	Send   bool
	Reason FlushReason
	// At is when to ask again if nothing happens before; 0 when Send is set or
	// there is nothing to send.
	At int64
}

// Policy decides when the batch of one lane leaves. It is not safe for
// concurrent use: the caller's lock covers it. The zero value is unusable; use
// NewPolicy.
type Policy struct {
	config PolicyConfig
	delay  time.Duration
	rtt    rttWindow

	// arrivals is the number of chunks as of lastArrival, each fading by a factor
	// e in rateMemory delays.
	arrivals    float64
	lastArrival int64

	// due is the deadline given for the batch that began at dueOf.
	dueOf, due int64
}

// NewPolicy returns a policy for one lane. The configuration must be valid.
func NewPolicy(c PolicyConfig) *Policy {
	p := &Policy{config: c}
	if !c.Auto {
		p.delay = keepable(c.Delay)
	}
	return p
}

// Decide says whether the batch leaves now. An empty batch neither leaves nor
// waits.
func (p *Policy) Decide(s State) Decision {
	switch {
	case s.Commands <= 0:
		return Decision{}
	case s.InFlight <= 0:
		return Decision{Send: true, Reason: FlushIdle}
	case p.delay == 0 || s.IdleActive <= 0 || p.expected(s.Now) < 1:
		return Decision{Send: true, Reason: FlushNobody}
	case s.Bytes >= p.config.MaxBytes || s.Commands >= p.config.MaxCommands:
		return Decision{Send: true, Reason: FlushFull}
	}
	at := p.deadline(s.FirstQueued)
	if s.Now >= at {
		return Decision{Send: true, Reason: FlushDelay}
	}
	return Decision{At: at}
}

// deadline returns when the batch begun at first has waited enough. Once
// given, the deadline of a batch only moves nearer.
func (p *Policy) deadline(first int64) int64 {
	at := first + int64(p.delay)
	if first == p.dueOf && p.due != 0 && p.due < at {
		return p.due
	}
	p.dueOf, p.due = first, at
	return at
}

// Arrived notes the end of a chunk read from a client, with the number of
// commands that it completed. A chunk is one arrival however many commands it
// brought: they came together, so they say nothing about who comes next. It
// needs to be called only while Delay is not zero.
func (p *Policy) Arrived(now int64, commands int) {
	if commands <= 0 || p.delay == 0 {
		return
	}
	p.arrivals = p.arrivals*p.faded(now) + 1
	p.lastArrival = max(now, p.lastArrival)
}

// expected returns how many arrivals the recent rate promises within one
// delay. The newest arrival is the one that asks; it is no evidence for another.
func (p *Policy) expected(now int64) float64 {
	return (p.arrivals - 1) * p.faded(now) / rateMemory
}

// faded returns what is left at time now of an arrival at lastArrival, 0 to 1.
func (p *Policy) faded(now int64) float64 {
	age := now - p.lastArrival
	if age <= 0 {
		return 1
	}
	return math.Exp(-float64(age) / (rateMemory * float64(p.delay)))
}

// ObserveRoundTrip adds one sample of the time from a write on an idle
// connection to the first byte of its answer, and reports whether Delay has
// changed. Samples that are not positive are ignored.
func (p *Policy) ObserveRoundTrip(now int64, rtt time.Duration) (changed bool) {
	if rtt <= 0 {
		return false
	}
	p.rtt.add(now, rtt)
	if !p.config.Auto {
		return false
	}
	old := p.delay
	p.delay = autoDelay(p.rtt.min())
	return p.delay != old
}

// Delay returns the delay in force. Zero means that nothing ever waits.
func (p *Policy) Delay() time.Duration { return p.delay }

// ActiveWindow returns how recently a session must have sent to count as
// active: four round trips, at least 10 ms.
func (p *Policy) ActiveWindow() time.Duration {
	return max(activeRoundTrips*p.rtt.min(), minActiveWindow)
}

// autoDelay spends the stated budget of a round trip, in whole microseconds so
// that noise below them does not count as a change.
func autoDelay(rtt time.Duration) time.Duration {
	return keepable(min(rtt/autoShare, maxAutoDelay).Truncate(time.Microsecond))
}

// keepable returns d, or 0 if the timer of this platform cannot keep it.
func keepable(d time.Duration) time.Duration {
	if d < minDelay {
		return 0
	}
	return d
}

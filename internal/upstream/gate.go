package upstream

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Gate stands before every dial of a process. It bounds how many are under way at a time, to more of
// them while the server takes them quickly; and from one that failed until one succeeds it lets dials through one after the other, with growing
// pauses, whoever wants them: a server that is away is not asked more often because more clients
// wait for it. All who wait go through as soon as it is known to be back.
type Gate struct {
	many, single *places       // of the first rank, and of the others
	turn         chan struct{} // one in it while somebody waits for the next attempt
	pause        Backoff

	mu       sync.Mutex
	failures int           // attempts since the server was there; 0: the gate is open
	next     time.Time     // when the next one may begin
	opened   chan struct{} // closed when the gate opens; nil while it is open
	welcomed time.Time     // when the server let one in last
}

// Rank says for whom a dial is.
type Rank uint8

const (
	// ForMany is a dial that many wait for: of a shared connection, or the proxy's own.
	ForMany Rank = iota
	// ForRegular is a dial for one client that had such a connection before, or for credentials. Every
	// second place is theirs.
	ForRegular
	// ForOne is a dial for one client. However many of them want one, the first rank has its
	// own places and does not wait.
	ForOne
)

// NewGate returns an open gate for at most limit dials at a time, at least two, of which a quarter
// are kept for those of the first rank. The others grow up to most where the server takes them
// quickly. pause spaces the attempts to reach a server that is away.
func NewGate(limit, most int, pause Backoff) *Gate {
	many := max(1, limit/4)
	single := max(1, limit-many)
	return &Gate{
		many: newPlaces(many, many), single: newPlaces(single, max(single, most-many)),
		turn: make(chan struct{}, 1), pause: pause,
	}
}

// places are those of a rank.
func (g *Gate) places(r Rank) *places {
	if r == ForMany {
		return g.many
	}
	return g.single
}

// Width is how many dials for single clients may be under way now.
func (g *Gate) Width() int { return g.single.size() }

// Welcomed is when the server let a connection in last.
func (g *Gate) Welcomed() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.welcomed
}

// Verdict is what a dial says of the server.
type Verdict uint8

const (
	// Unclear says nothing: the dial was given up, has not gone far enough, or was not begun for want
	// of a password.
	Unclear Verdict = iota
	// Away is a server that could not be reached, or had no room.
	Away
	// Reached is a server that answered with a refusal.
	Reached
	// Welcome is a server that let the connection in.
	Welcome
)

// verdict judges by the outcome of a dial with its handshake.
func verdict(err error) Verdict {
	var lack *noPasswordError
	switch {
	case err == nil:
		return Welcome
	case errors.Is(err, context.Canceled), errors.As(err, &lack):
		return Unclear
	case Unavailable(err):
		return Away
	}
	return Reached
}

// Enter waits until a dial may begin, and returns the context's error if that ends before. Each
// success is followed by one Leave of the same rank.
func (g *Gate) Enter(ctx context.Context, r Rank) error {
	for {
		through, err := g.attempt(ctx)
		if err != nil {
			return err
		}
		if err := g.places(r).enter(ctx, r == ForRegular); err != nil {
			return err
		}
		if through || !g.Closed() {
			return nil
		}
		g.places(r).leave() // it has closed while this one waited
	}
}

// attempt waits for a turn to try whether the server is back. It returns false without an error if
// the gate is open.
func (g *Gate) attempt(ctx context.Context) (through bool, err error) {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return false, nil
	}
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-opened:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
	g.mu.Lock()
	wait := time.Until(g.next)
	g.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-opened:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failures == 0 {
		return false, nil
	}
	g.failures++
	g.next = time.Now().Add(g.pause.Delay(g.failures))
	return true, nil
}

// Leave ends a dial and tells how it went, and how long it took.
func (g *Gate) Leave(r Rank, v Verdict, took time.Duration) {
	g.note(v)
	p := g.places(r)
	p.learn(took, v)
	if v == Away && r == ForMany {
		g.single.learn(took, v)
	}
	p.leave()
}

// note opens the gate or closes it.
func (g *Gate) note(v Verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case v == Away && g.failures == 0:
		g.failures = 1
		g.next = time.Now().Add(g.pause.Delay(g.failures))
		g.opened = make(chan struct{})
	case v >= Reached && g.failures > 0:
		g.failures = 0
		close(g.opened)
		g.opened = nil
	}
	if v == Welcome {
		g.welcomed = time.Now()
	}
}

// Closed reports whether the server is away, so that dials are spaced.
func (g *Gate) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures > 0
}

// Pause is how long to wait after a dial that has failed for the n-th time in a row, before the
// next is begun: not at all where the gate spaces them.
func (g *Gate) Pause(n int) time.Duration {
	if g.Closed() {
		return 0
	}
	return g.pause.Delay(n)
}

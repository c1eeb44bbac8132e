package reclaim

import (
	"context"
	"sync/atomic"
	"time"
)

// fence counts the commands that clients send and no Session understands: scripts, what
// passes on a connection of a client's own, what comes in pieces. Any of them may ack,
// move or delete an entry, or the consumer in whose name it was claimed.
type fence struct {
	passed atomic.Uint64
	last   atomic.Int64 // when, since the engine was made
}

// Unseen says that a client is about to send what no Session is shown, or understands. It
// returns nil, or what has to be run first: it gives back everything that is held, about
// a round trip, and its verdict is to forward. What is claimed ahead at this moment is not
// held when it comes; and nothing is claimed ahead for as long as a batch is held, which is
// about as long as it may take until such a command is executed.
func (e *Engine) Unseen() *Task {
	if e.cfg.Mode != On {
		return nil
	}
	e.fence.last.Store(int64(time.Since(e.made)))
	e.fence.passed.Add(1)
	if e.holding.Load() == 0 {
		return nil
	}
	e.mu.Lock()
	held := e.takeAll()
	e.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	return &Task{run: func(ctx context.Context) Verdict {
		e.restoreAll(ctx, held)
		return Verdict{}
	}}
}

// quiet reports whether no such command has been sent lately.
func (f *fence) quiet(made time.Time) bool {
	return f.passed.Load() == 0 || time.Since(made)-time.Duration(f.last.Load()) > holdTime
}

// outdated reports whether such a command has been sent since the claim was.
func (e *Engine) outdated(b *batch) bool { return b.fence != e.fence.passed.Load() }

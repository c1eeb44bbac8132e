package reclaim

import (
	"context"
	"sync/atomic"
)

// Action is what is to be done with a command, or with a whole transaction.
type Action uint8

// The actions.
const (
	// Forward sends the command as it is.
	Forward Action = iota
	// Answer gives the client Verdict.Reply instead.
	Answer
	// Defer runs Verdict.Task; its verdict is never Defer again.
	Defer
	// Fail answers that the command's outcome is unknown, because of Verdict.Err.
	Fail
)

// Verdict is what becomes of one command. The zero value forwards it.
type Verdict struct {
	Action Action
	// Reply is the whole answer, for a transaction that of every command in it. It
	// must not be changed.
	Reply []byte
	// Handout, if not nil, says that Reply carries claimed entries.
	Handout *Handout
	// Ahead holds AheadN commands to be sent directly before the forwarded ones, in
	// the same write. Their replies are dropped.
	Ahead  []byte
	AheadN int
	// Watch, if not nil, wants to see the replies to what was forwarded.
	Watch *Watch
	// Parked, if not nil, stands for the blocking read that was forwarded.
	Parked *Parked
	// Task is set with Defer.
	Task *Task
	// Err is set with Fail.
	Err error
}

// Watch looks at the replies to a forwarded command or transaction.
type Watch struct {
	// Whole says that all bytes of the replies are needed. Otherwise the first few
	// will do.
	Whole bool
	seen  func(reply []byte)
}

// Seen hands over the replies, all of them in one piece, or nil if they were lost
// or became too large to be kept. The bytes are not kept. It is called once.
func (w *Watch) Seen(reply []byte) { w.seen(reply) }

// Task is what has to be asked upstream before a command can be answered.
type Task struct {
	run func(ctx context.Context) Verdict
}

// Run asks. It takes about one round trip and never longer than ctx. The caller
// must carry out the verdict even if the client has left meanwhile: its Handout
// has to be dropped then. Whose client may leave says so with Wanted.
func (t *Task) Run(ctx context.Context) Verdict { return t.run(ctx) }

// Handout is a number of claimed entries on their way to one client.
type Handout struct {
	e       *Engine
	batches []*batch
	settled atomic.Bool
}

// Written says that the client may have got a byte of the reply. The entries are
// its business from now on, as if it had claimed them directly.
func (h *Handout) Written() {
	if h.settled.Swap(true) {
		return
	}
	for _, b := range h.batches {
		h.e.cfg.Events.entries("delivered", b.profile.target.stream, b.profile.target.group, b.ids())
	}
}

// Drop says that no byte of the reply has left. The entries are given back in the
// background, with their old owner, idle time and delivery count. Only the first
// call of Written or Drop counts.
func (h *Handout) Drop() {
	if !h.settled.Swap(true) {
		h.e.giveBack(h.batches)
	}
}

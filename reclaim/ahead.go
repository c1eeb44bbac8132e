package reclaim

import (
	"time"

	"streamproxy/internal/resp"
)

// ahead is a claim under way for streams that its consumer has not asked about yet. What
// clients do meanwhile to an entry by its name may reach the server behind the claim, and
// be answered before what was claimed is held: it would be handed out although its client
// knows that it was acked. So such a stream is not held, but goes back.
type ahead struct {
	sent    time.Time
	fence   uint64
	wishes  []wish
	spoiled []bool // by wish
	trimmed []bool // by wish, see trim.go
}

// setOut notes a claim that is about to be sent, and what the fence said before it was
// wished for. The lock is held.
func (e *Engine) setOut(wishes []wish, fence uint64) *ahead {
	a := &ahead{sent: time.Now(), fence: fence, wishes: wishes,
		spoiled: make([]bool, len(wishes)), trimmed: make([]bool, len(wishes))}
	e.aheads[a] = struct{}{}
	e.claiming.Store(int64(len(e.aheads)))
	return a
}

// arrive ends that, when what it brought is held or on its way back.
func (e *Engine) arrive(a *ahead) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.aheads, a)
	e.reserved -= len(a.wishes)
	e.claiming.Store(int64(len(e.aheads)))
}

// spoil lets nothing be held of the streams under way that a command concerns. The lock is
// held.
func (e *Engine) spoil(concerned func(targetKey) bool) {
	e.underWay(concerned, func(a *ahead, i int) { a.spoiled[i] = true })
}

// underWay marks the wishes under way that a command concerns. The lock is held.
func (e *Engine) underWay(concerned func(targetKey) bool, mark func(a *ahead, i int)) {
	for a := range e.aheads {
		for i, w := range a.wishes {
			if concerned(w.p.target.targetKey) {
				mark(a, i)
			}
		}
	}
}

// untouched reports whether nothing is held, and nothing on its way to be.
func (e *Engine) untouched() bool { return e.holding.Load() == 0 && e.claiming.Load() == 0 }

// pursuit returns what to call with the replies to commands that name entries, or take any
// of a stream, nil if there are none that could be held. A claim that was sent after a command had been judged may
// reach the server before it, where a stream is hot: then the batch is here, or on its way, when the command's reply
// arrives, and must not outlast it.
func (s *Session) pursuit(cmds ...resp.Command) func(reply []byte) {
	if s.e.known.empty() || s.e.warm.Load() == 0 && s.e.untouched() {
		return nil
	}
	var named []resp.Command
	for _, c := range cmds {
		if c.Len() > 2 && s.e.known.has(c.Arg(1)) {
			named = append(named, cloneCommand(c))
		}
	}
	if len(named) == 0 {
		return nil
	}
	return func([]byte) {
		for _, c := range named {
			if kindOf(c.Arg(0)) == kindClaim {
				s.e.giveBack(s.takeListed(c))
			} else {
				s.e.giveBack(s.takeNamed(c))
			}
		}
	}
}

// watching forwards, and lets seen have the replies if it is not nil.
func watching(seen func(reply []byte)) func() Verdict {
	if seen == nil {
		return pass
	}
	return func() Verdict { return Verdict{Watch: &Watch{seen: seen}} }
}

// also lets seen have the replies to what is forwarded too, if it is not nil.
func (v Verdict) also(seen func(reply []byte)) Verdict {
	switch {
	case seen == nil:
	case v.Watch == nil:
		v.Watch = &Watch{seen: seen}
	default:
		v.Watch.seen = both(v.Watch.seen, seen)
	}
	return v
}

// both calls one after the other, of which either may be nil.
func both(one, other func(reply []byte)) func(reply []byte) {
	switch {
	case one == nil:
		return other
	case other == nil:
		return one
	}
	return func(reply []byte) {
		one(reply)
		other(reply)
	}
}

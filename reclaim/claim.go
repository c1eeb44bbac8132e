package reclaim

import (
	"context"
	"errors"
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

// Claiming with knowledge: in one transaction XPENDING lists what may be claimed,
// with owner, idle time and count, and XAUTOCLAIM claims it. Its own reply names
// neither, and they are what a give-back has to restore.

const (
	// claimAhead is how many further hot streams of a pass are claimed for along
	// with the one that was asked about.
	claimAhead = 8
	// claimMost bounds what one claim asks for, whatever the client's COUNT: the reply is
	// in memory as a whole before it is passed on. A client that wants more has a cursor
	// to go on from, as it may have from the server.
	claimMost = 1000
	// claimCommands is how many commands one such transaction has.
	claimCommands = 4
)

// wish is one stream to be claimed for a consumer.
type wish struct {
	p     *profile
	from  *hit
	count int
}

// claimNow makes the claim that a consumer has asked for, and those that it is
// about to ask for.
func (s *Session) claimNow(ctx context.Context, p *profile, cons *consumer, c claimCall, m manner) Verdict {
	e := s.e
	forward := func(reason string) Verdict {
		e.cfg.Events.forwarded(reason)
		return Verdict{Ahead: m.ahead, AheadN: m.aheadN, Watch: m.watch(c)}
	}
	e.mu.Lock()
	fence := e.fence.passed.Load()
	wishes, ok := e.wishes(s, p, cons, c, time.Now())
	if !ok {
		e.mu.Unlock()
		return forward("large")
	}
	a := e.setOut(wishes, fence)
	e.mu.Unlock()
	defer e.arrive(a)
	if len(wishes) == 0 {
		// Somebody else has got it meanwhile: as cold as can be.
		e.cfg.Events.local(m.name)
		return answer(m.wrap(p.empty))
	}
	var commands []byte
	for _, w := range wishes {
		commands = w.append(commands, c)
	}
	replies, err := e.up.DoUpTo(ctx, s.id, commands, claimCommands*len(wishes), e.cfg.maxReply())
	arrived := time.Now()
	switch {
	case errors.Is(err, ErrNotSent):
		return forward("unsent")
	case err != nil:
		return Verdict{Action: Fail, Err: err}
	}
	own, left, reply := e.claimed(s.id, cons, c, a, replies, arrived)
	e.giveBack(left) // what cannot be held
	switch {
	case reply == nil && own != nil:
		e.restoreAll(ctx, []*batch{own})
		return forward("large")
	case reply == nil:
		return forward("refused")
	}
	e.cfg.Events.local(m.name)
	v := answer(m.wrap(reply))
	if own != nil {
		v.Handout = &Handout{e: e, batches: []*batch{own}}
	}
	return v
}

// append writes the transaction that fulfils a wish. XPENDING is asked for one
// more than is claimed: the first id listed and not claimed is where to go on.
func (w *wish) append(dst []byte, c claimCall) []byte {
	t := w.p.target
	n := strconv.Itoa(w.count)
	dst = resp.AppendCommand(dst, "MULTI")
	dst = resp.AppendCommand(dst, "XPENDING", t.stream, t.group, "IDLE", millis(w.p.minIdle), w.from.id, "+", strconv.Itoa(w.count+1))
	dst = resp.AppendCommand(dst, "XAUTOCLAIM", t.stream, t.group, c.consumer, millis(claimIdle(w.p.minIdle)), w.from.id, "COUNT", n)
	return resp.AppendCommand(dst, "EXEC")
}

// wishes lists the stream asked about and the next hot ones of the consumer's
// pass, as far as there is room to hold what they bring, and reserves memory for the
// replies; ok is false if there is none even for the first. The lock is held.
func (e *Engine) wishes(s *Session, p *profile, cons *consumer, c claimCall, now time.Time) (list []wish, ok bool) {
	if p.hot == nil {
		return nil, true
	}
	if !e.reserve(1) {
		return nil, false
	}
	n := e.cfg.portionOf(p.target, c.count)
	if s.stranger {
		return append(list, wish{p, p.hot, min(n, strangersEntries)}), true
	}
	list = append(list, wish{p, p.hot, n})
	if e.heldBytes >= e.cfg.maxHeld() || cons.last == nil || !e.fence.quiet(e.made) {
		return list, true
	}
	return append(list, e.further(p, cons, c, now)...), true
}

// further lists the next hot streams of the consumer's pass. Half of the memory for claims
// is left to what is asked for. The lock is held.
func (e *Engine) further(p *profile, cons *consumer, c claimCall, now time.Time) (list []wish) {
	room := e.cfg.MaxHeldEntries - e.heldN
	for _, next := range after(cons.last.streams, p.target.stream) {
		t := e.targets[targetKey{cons.db, cons.user, next, cons.group}]
		if t == nil || t.profiles[p.minIdle] == nil || cons.held[next] != nil || now.Before(cons.alone[next]) {
			continue
		}
		q := t.profiles[p.minIdle]
		n := min(e.cfg.portionOf(t, c.count), room)
		if q.temper(now) != hot || t.isLarge(now) || n < 1 {
			continue
		}
		if !e.roomFor(claimShares/2) || !e.reserve(1) {
			break
		}
		room -= n
		if list = append(list, wish{q, q.hot, n}); len(list) == claimAhead {
			break
		}
	}
	return list
}

// after lists the streams behind one of them. A pass goes through them in order
// and does not turn round.
func after(streams []string, one string) []string {
	for i, s := range streams {
		if s == one {
			return streams[i+1:]
		}
	}
	return nil
}

// claimed takes the replies to a claim: the reply to the caller's own XAUTOCLAIM,
// with the batch that it carries, and what could not be held of the rest. A nil
// reply means that it could not be asked, or with a batch, which is to go back, that it
// was too large.
func (e *Engine) claimed(id Identity, cons *consumer, c claimCall, a *ahead, replies [][]byte, arrived time.Time) (own *batch, left []*batch, reply []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, w := range a.wishes {
		b, raw := e.fulfilled(id, cons, w, replies[claimCommands*i:claimCommands*(i+1)], arrived)
		if i == 0 {
			own, reply = b, raw
			if b != nil && raw != nil {
				cons.setCursor(w.p.target.stream, textOf(b.cursor))
			}
			continue
		}
		if b == nil {
			continue
		}
		b.asked, b.sent, b.fence, b.trimmed = c.count, a.sent, a.fence, a.trimmed[i]
		if raw == nil || a.spoiled[i] || e.outdated(b) || !arrived.Before(b.due()) || cons.live == 0 || e.closed || e.draining || cons.held[w.p.target.stream] != nil {
			left = append(left, b)
			continue
		}
		e.hold(b)
	}
	return own, left, reply
}

// refusal is why a claim's transaction was not executed: the error with which the first
// of its commands was not even queued, or EXEC's own.
func refusal(replies [][]byte) string {
	for _, r := range replies[1:] {
		if isError(r) {
			return errorCode(r)
		}
	}
	return ""
}

// fulfilled reads the replies to one wish. It returns the batch, nil if nothing was
// claimed, and the raw reply of XAUTOCLAIM, nil if it was not executed or is too large.
// The lock is held.
func (e *Engine) fulfilled(id Identity, cons *consumer, w wish, replies [][]byte, arrived time.Time) (*batch, []byte) {
	t := w.p.target
	pending, raw, ok := executed(replies)
	if !ok {
		e.refused(t.targetKey, refusal(replies), arrived)
		return nil, nil
	}
	if isError(raw) {
		e.refused(t.targetKey, errorCode(raw), arrived)
		return nil, raw
	}
	listed, _ := parsePending(pending) // unknown entries are delivered all the same
	if !isWhole(raw) {
		return e.tooLarge(id, cons, w, listed, arrived), nil
	}
	b, ok := newBatch(w.p, cons, id, raw, arrived)
	if !ok {
		return nil, raw
	}
	b.know(listed)
	t.weigh(b.size, len(b.entries))
	e.cfg.Events.entries("claimed", t.stream, t.group, b.ids())
	e.cfg.Events.entries("deleted", t.stream, t.group, b.deletedN)
	if w.p.hot == w.from {
		e.setHot(w.p, b.rest(listed, arrived))
	}
	if b.ids() == 0 {
		return nil, raw
	}
	if hides() {
		return nil, w.p.empty
	}
	return b, raw
}

// executed finds the replies to XPENDING and XAUTOCLAIM among those to one wish. The second
// may be cut.
func executed(replies [][]byte) (pending, raw []byte, ok bool) {
	if isError(replies[0]) {
		// Without MULTI, what was meant to be queued has been executed at once.
		return replies[1], replies[2], true
	}
	exec := replies[claimCommands-1]
	n, pos := arrayHead(exec)
	if n != 2 {
		return nil, nil, false
	}
	if _, size, err := resp.Parse(exec[pos:]); err == nil {
		return exec[pos : pos+size], exec[pos+size:], true
	}
	return nil, nil, true // cut within the list: owners with names that long
}

// tooLarge is what has been claimed and is not here as a whole, to be given back. The
// server says the rest from now on. The lock is held.
func (e *Engine) tooLarge(id Identity, cons *consumer, w wish, listed []pendingEntry, arrived time.Time) *batch {
	t := w.p.target
	e.enlarge(t, arrived)
	t.weigh(2*int64(e.cfg.maxReply()), len(listed))
	b := &batch{profile: w.p, consumer: cons, id: id, at: arrived}
	for i := range listed {
		b.entries = append(b.entries, entry{id: listed[i].id, was: &listed[i]})
	}
	e.cfg.Events.entries("claimed", t.stream, t.group, min(len(listed), w.count))
	return b
}

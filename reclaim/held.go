package reclaim

import (
	"context"
	"time"

	"streamproxy/internal/resp"
)

// What is held was claimed for a consumer that is in the middle of its pass and
// will ask about that stream in a moment.

const (
	// holdTime is how long a batch waits to be fetched, the way of its claim included.
	holdTime = time.Second
	// freshShare is for what part of the min-idle time a batch is handed out as it is. To
	// the server its entries are idle since the claim, to their consumer since they came:
	// by so much sooner another may claim them.
	freshShare = 10
	// aloneTime is how long a stream whose batch was not fetched is not claimed ahead
	// of its consumer's asking.
	aloneTime = 5 * time.Second
)

// due is when a batch has waited long enough.
func (b *batch) due() time.Time { return b.sent.Add(holdTime) }

// stale reports whether the entries have been idle for too long to be handed out.
func (b *batch) stale() bool { return time.Since(b.sent) > b.profile.minIdle/freshShare }

// hold keeps a batch for its consumer, for which nothing of that stream is held. The
// lock is held.
func (e *Engine) hold(b *batch) {
	e.held[b] = struct{}{}
	b.consumer.held[b.profile.target.stream] = b
	b.profile.target.holding++
	e.heldN += len(b.entries)
	e.heldBytes += b.size
	e.countHeld()
	e.poke()
}

// release takes a batch out of what is held; whoever calls it has it from now on.
// It returns false if somebody else has taken it before. The lock is held.
func (e *Engine) release(b *batch) bool {
	if _, ok := e.held[b]; !ok {
		return false
	}
	delete(e.held, b)
	delete(b.consumer.held, b.profile.target.stream)
	b.profile.target.holding--
	e.heldN -= len(b.entries)
	e.heldBytes -= b.size
	e.countHeld()
	return true
}

func (e *Engine) countHeld() {
	e.holding.Store(int64(len(e.held)))
	e.holdingBytes.Store(e.heldBytes)
	e.cfg.Events.held(e.heldN, e.heldBytes)
}

// takeHeld takes everything that is held for a consumer. The lock is held.
func (e *Engine) takeHeld(c *consumer) (taken []*batch) {
	for _, b := range c.held {
		e.release(b)
		taken = append(taken, b)
	}
	return taken
}

// takeAll takes everything that is held. The lock is held.
func (e *Engine) takeAll() (taken []*batch) {
	for b := range e.held {
		e.release(b)
		taken = append(taken, b)
	}
	return taken
}

// fetch answers a consumer from what is held for it, if it asks as it did when the
// claim was made and nothing has passed since that might concern it; else that goes back
// first. The lock is held.
func (s *Session) fetch(b *batch, c claimCall, m manner) Verdict {
	e := s.e
	e.release(b)
	fits := !e.outdated(b) && !b.trimmed && b.profile.minIdle == c.minIdle && len(b.entries) <= c.count && b.id.Proto == s.id.Proto &&
		(c.fromStart() || c.start == b.consumer.cursors[c.stream])
	if !fits {
		return s.after([]*batch{b}, func() Verdict { return s.judge(c, m) })
	}
	if b.stale() {
		return s.deferred(func(ctx context.Context) Verdict { return s.renew(ctx, b, c, m) })
	}
	return s.deliver(b, c, m)
}

// deliver hands a batch out that nobody else has. The lock is held.
func (s *Session) deliver(b *batch, c claimCall, m manner) Verdict {
	e := s.e
	b.consumer.setCursor(c.stream, textOf(b.cursor))
	e.cfg.Events.local(m.name)
	v := answer(m.wrap(b.reply()))
	v.Handout = &Handout{e: e, batches: []*batch{b}}
	if e.faulty("twice") {
		e.hold(b)
	}
	return v
}

// tickHeld gives back what nobody has fetched in time. The lock is held.
func (e *Engine) tickHeld(now time.Time) (next time.Time) {
	var late []*batch
	for b := range e.held {
		due := b.due()
		if now.Before(due) {
			if next.IsZero() || due.Before(next) {
				next = due
			}
			continue
		}
		late = append(late, b)
	}
	for _, b := range late {
		e.release(b)
		b.consumer.alone[b.profile.target.stream] = now.Add(aloneTime)
	}
	e.giveBackLocked(late)
	return next
}

// takeNamed takes the batches of which a client acks, deletes or moves an entry by its
// id. They go back before it does, for it may fail, or name only some of them.
func (s *Session) takeNamed(cmd resp.Command) (taken []*batch) {
	ids := s.named(cmd)
	if len(ids) == 0 {
		return nil
	}
	e := s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spoil(func(k targetKey) bool { return k.concernedBy(s.id, cmd) })
	for b := range e.held {
		if b.profile.target.concernedBy(s.id, cmd) && b.hasAny(ids) {
			e.release(b)
			taken = append(taken, b)
		}
	}
	return taken
}

// takeListed takes what is held of a stream whose pending entries XPENDING or XINFO lists, or
// an XAUTOCLAIM takes that is left to the server, or DUMP copies, or of which XTRIM deletes
// some: each shall find them where they were.
func (s *Session) takeListed(cmd resp.Command) []*batch {
	if s.e.untouched() {
		return nil
	}
	of := loss{db: s.id.DB, streams: []string{string(cmd.Arg(1))}, group: string(cmd.Arg(2)), named: true}
	switch name := cmd.Arg(0); {
	case fold(name, "xtrim"), fold(name, "dump"):
		of.named = false
	case fold(name, "xinfo"):
		of.streams, of.group = []string{string(cmd.Arg(2))}, string(cmd.Arg(3))
		of.named = fold(cmd.Arg(1), "consumers")
		if !of.named && (cmd.Len() < 4 || !fold(cmd.Arg(1), "stream")) {
			return nil // GROUPS counts, whosever they are
		}
	}
	return s.take(&of)
}

func (s *Session) take(l *loss) []*batch {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.e.takeLost(l)
}

// named lists the arguments of a command that look like ids, if anything is held, or
// about to be, that they could name.
func (s *Session) named(cmd resp.Command) (ids []string) {
	if s.e.untouched() {
		return nil
	}
	for i := 2; i < cmd.Len(); i++ {
		if a := cmd.Arg(i); len(a) > 0 && a[0]-'0' <= 9 {
			id := string(a)
			ids = append(ids, id)
			if !hasDash(id) {
				ids = append(ids, id+"-0")
			}
		}
	}
	return ids
}

func hasDash(id string) bool {
	for i := range len(id) {
		if id[i] == '-' {
			return true
		}
	}
	return false
}

// concernedBy reports whether a command is about this stream, and about this group unless it
// names none.
func (k targetKey) concernedBy(id Identity, cmd resp.Command) bool {
	if k.db != id.DB || k.stream != string(cmd.Arg(1)) {
		return false
	}
	name := cmd.Arg(0)
	return fold(name, "xdel") || fold(name, "xdelex") || k.group == string(cmd.Arg(2))
}

func (b *batch) hasAny(ids []string) bool {
	for _, e := range b.entries {
		for _, id := range ids {
			if e.id == id && id != "" {
				return true
			}
		}
	}
	return false
}

package reclaim

import (
	"context"

	"slices"
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

// Parked is a read that is blocked at the server, with nothing to read. If entries
// become reclaimable meanwhile and its client does not ask for them by itself, they
// are given to it as if they were new.
type Parked struct {
	s       *Session
	id      Identity
	rs      *readSet
	call    groupRead
	since   time.Time
	unblock chan struct{}
	called  bool // unblock has been signalled for the read under way
	ended   bool
	size    int
}

// Outcome says what becomes of a blocked read that was answered with a null.
type Outcome struct {
	// Again says that the read is to be sent once more, with Block as its BLOCK (0 is
	// for ever), and that the Parked lives on. Otherwise Reply answers the client.
	Again   bool
	Block   time.Duration
	Reply   []byte
	Handout *Handout // entries that Reply carries, or nil
}

const (
	// parkedPage is how many idle entries are listed at once when looking for those
	// of others; parkedPages is how often that is done for one claim.
	parkedPage  = 100
	parkedPages = 10
	// parkedCount is the most that a read without COUNT is given.
	parkedCount = 100
	// parkedStreams is from how many streams one read is given entries. It is no less
	// than what a read of new entries may bring: a client that never asks gets the rest
	// a whole BLOCK later, and has to have all in time.
	parkedStreams = 256
	// quietIntervals is for how many intervals nobody must have asked for a stream's
	// reclaimable entries before a parked read is given them.
	quietIntervals = 2
)

// park begins to watch a blocked read. The lock is held.
func (e *Engine) park(s *Session, rs *readSet, call groupRead, now time.Time) *Parked {
	p := &Parked{s: s, id: s.id, rs: rs, call: call, since: now, unblock: make(chan struct{}, 1)}
	p.size = sizeOf(call.streams, lastMemberBytes)
	e.memory.add(p.size)
	rs.parked++
	e.parked[p] = struct{}{}
	if next := e.callBack(p, now); !next.IsZero() {
		e.poke()
	}
	return p
}

// Unblock is signalled when the read is to be called back by CLIENT UNBLOCK.
func (p *Parked) Unblock() <-chan struct{} { return p.unblock }

// End says that the read was answered with data or an error, or will not be
// answered any more. It may be called again.
func (p *Parked) End(reply []byte) {
	e := p.s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	delete(e.parked, p)
	e.memory.add(-p.size)
	p.rs.parked--
	p.rs.use(p.rs.id, time.Now())
	if len(reply) > 0 && !isError(reply) {
		p.rs.proven = true
		p.rs.consumer.last = p.rs
	}
}

// Nil takes the null by which the read has ended, because its time was up or
// because it was called back. It claims what there is, in about two round trips.
func (p *Parked) Nil(ctx context.Context, null []byte) Outcome {
	e := p.s.e
	batches := p.claim(ctx)
	e.mu.Lock()
	p.rs.proven = true
	p.rs.consumer.last = p.rs
	called := p.called
	p.called = false
	select { // a signal that came too late must not call back the next one
	case <-p.unblock:
	default:
	}
	gone := e.draining || e.closed
	e.mu.Unlock()
	if len(batches) > 0 {
		p.End(nil)
		return Outcome{Reply: p.reply(batches), Handout: &Handout{e: e, batches: batches}}
	}
	if !called || gone {
		p.End(null)
		return Outcome{Reply: null}
	}
	left := time.Duration(0)
	if p.call.block > 0 {
		if left = p.call.block - time.Since(p.since); left < time.Millisecond {
			p.End(null)
			return Outcome{Reply: null}
		}
	}
	return Outcome{Again: true, Block: left}
}

// reply writes the claimed entries as the read's own reply.
func (p *Parked) reply(batches []*batch) []byte {
	var list []readEntries
	for _, b := range batches {
		r := readEntries{stream: b.profile.target.stream}
		for _, en := range b.entries {
			r.entries = append(r.entries, en.raw)
		}
		list = append(list, r)
	}
	return readReply(p.id.Proto, list)
}

// tickParked calls back the reads for which there is something. The lock is held.
func (e *Engine) tickParked(now time.Time) (next time.Time) {
	for p := range e.parked {
		if at := e.callBack(p, now); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// callBack calls a read back if there is something for it, and otherwise returns
// when there may be; zero if that is not known. The lock is held.
func (e *Engine) callBack(p *Parked, now time.Time) time.Time {
	if e.hots == 0 || p.called || p.call.block > 0 && p.call.block <= e.cfg.Interval {
		return time.Time{} // its own null comes soon enough
	}
	ready, at := e.ready(p, now)
	if len(ready) == 0 {
		return at
	}
	p.called = true
	select {
	case p.unblock <- struct{}{}:
	default:
	}
	return time.Time{}
}

// ready lists the hot profiles that a parked read may be given from, and if there
// are none, when there may be. The lock is held.
func (e *Engine) ready(p *Parked, now time.Time) (list []*profile, at time.Time) {
	c := p.rs.consumer
	if c.live == 0 || p.ended || e.draining {
		return nil, at
	}
	for _, s := range p.rs.streams {
		t := e.targets[targetKey{c.db, c.user, s, c.group}]
		if t == nil || t.holding > 0 {
			continue
		}
		q := t.hotProfile(now)
		if q == nil || c.tried[q] == q.round {
			continue
		}
		quiet := t.asked.Add(quietIntervals * e.interval(q.minIdle))
		if !t.asked.IsZero() && now.Before(quiet) {
			if at.IsZero() || quiet.Before(at) {
				at = quiet
			}
			continue
		}
		if list = append(list, q); len(list) == parkedStreams {
			break
		}
	}
	return list, at
}

// hotProfile is the hot profile with the longest min-idle: what that one finds,
// every client of the stream regards as abandoned.
func (t *target) hotProfile(now time.Time) (best *profile) {
	for _, p := range t.profiles {
		if p.temper(now) == hot && (best == nil || p.minIdle > best.minIdle) {
			best = p
		}
	}
	return best
}

// search is the claim for one stream of a parked read.
type search struct {
	p      *profile
	from   *hit
	next   string // where the next page begins
	found  []pendingEntry
	others bool // the list was read to its end and all of it is found
	alone  bool // entries are too large for more than one at a time
}

// claim claims for the read what is ready.
func (p *Parked) claim(ctx context.Context) []*batch {
	e := p.s.e
	e.mu.Lock()
	searches := p.searches(time.Now())
	e.mu.Unlock()
	if len(searches) == 0 {
		return nil
	}
	defer p.leaveRoom()
	batches, err := p.claimAll(ctx, searches)
	if err != nil {
		e.cfg.Logger.Warn("a parked read could not be given reclaimable entries", "group", p.call.group, "error", err)
	}
	return batches
}

// searches lists where to look, and reserves memory for the reply if that is anywhere. A
// stream with large entries is not looked at along with others. The lock is held.
func (p *Parked) searches(now time.Time) (list []*search) {
	e := p.s.e
	ready, _ := e.ready(p, now)
	if len(ready) == 0 || !e.reserve(1) {
		return nil
	}
	for _, q := range ready {
		s := &search{p: q, from: q.hot, next: q.hot.id, alone: q.target.isLarge(now)}
		if s.alone && len(list) > 0 {
			continue
		}
		p.rs.consumer.tried[q] = q.round
		if s.alone && q.target.giant != "" {
			s.next = "(" + q.target.giant
		}
		if list = append(list, s); s.alone {
			break
		}
	}
	return list
}

func (p *Parked) leaveRoom() {
	p.s.e.mu.Lock()
	defer p.s.e.mu.Unlock()
	p.s.e.reserved--
}

// claimAll lists what is idle, by pages, and claims by id what may be given.
func (p *Parked) claimAll(ctx context.Context, searches []*search) ([]*batch, error) {
	for n, open := 0, slices.Clone(searches); n < parkedPages && len(open) > 0; n++ {
		var err error
		if open, err = p.list(ctx, open); err != nil {
			return nil, err
		}
	}
	var commands []byte
	var asked []*search
	room := max(p.s.e.cfg.MaxHeldEntries, p.limit())
	for _, s := range searches {
		if len(s.found) > room { // the reply is in memory as a whole
			s.found, s.others = s.found[:room], false
		}
		room -= len(s.found)
		if len(s.found) > 0 {
			commands = p.appendClaim(commands, s)
			asked = append(asked, s)
		} else {
			p.done(s, nil)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	replies, err := p.s.e.up.DoUpTo(ctx, p.id, commands, len(asked), p.s.e.cfg.maxReply()/len(asked))
	if err != nil {
		return nil, err
	}
	arrived := time.Now()
	var batches []*batch
	for i, s := range asked {
		if b := p.done(s, p.batch(s, replies[i], arrived)); b != nil {
			batches = append(batches, b)
		}
	}
	return batches, nil
}

// list reads one page for each search and returns those that need another.
func (p *Parked) list(ctx context.Context, searches []*search) (more []*search, err error) {
	var commands []byte
	for _, s := range searches {
		t := s.p.target
		commands = resp.AppendCommand(commands, "XPENDING", t.stream, t.group, "IDLE", millis(s.p.minIdle), s.next, "+", strconv.Itoa(parkedPage))
	}
	replies, err := p.s.e.up.Do(ctx, p.id, commands, len(searches))
	if err != nil {
		return nil, err
	}
	for i, s := range searches {
		list, _ := parsePending(replies[i])
		if p.take(s, list) {
			more = append(more, s)
		}
	}
	return more, nil
}

// take chooses from one page and reports whether another is wanted.
func (p *Parked) take(s *search, list []pendingEntry) (more bool) {
	limit := p.limit()
	if s.alone {
		limit = 1
	}
	own := false
	for i, en := range list {
		if en.owner == p.call.consumer && !s.p.own {
			own = true
			continue
		}
		if len(s.found) == limit {
			return false
		}
		s.found = append(s.found, list[i])
	}
	s.others = len(list) < parkedPage && !own
	if len(list) < parkedPage || len(s.found) == limit {
		return false
	}
	s.next = "(" + list[len(list)-1].id
	return true
}

// limit is the most entries per stream that the read may be given.
func (p *Parked) limit() int {
	if p.call.count > 0 {
		return min(p.call.count, parkedPage*parkedPages)
	}
	return parkedCount
}

// appendClaim claims what was found, as far as it is idle still.
func (p *Parked) appendClaim(dst []byte, s *search) []byte {
	t := s.p.target
	args := []string{"XCLAIM", t.stream, t.group, p.call.consumer, millis(s.p.minIdle)}
	for _, en := range s.found {
		args = append(args, en.id)
	}
	return resp.AppendCommand(dst, args...)
}

// batch takes the reply to a claim by id. What is cut off it goes back.
func (p *Parked) batch(s *search, raw []byte, arrived time.Time) *batch {
	list, all := wholeElements(raw)
	if !all {
		p.cut(s, list, arrived)
	}
	if len(list) == 0 {
		return nil
	}
	b := &batch{profile: s.p, consumer: p.rs.consumer, id: p.id, at: arrived}
	for _, en := range list {
		if id := entryID(en); id != "" {
			b.entries = append(b.entries, entry{id: id, raw: en})
		}
	}
	b.know(s.found)
	if len(b.entries) == 0 {
		return nil
	}
	return b
}

// cut gives back what has been claimed beyond the entries that are here.
func (p *Parked) cut(s *search, here [][]byte, arrived time.Time) {
	e := p.s.e
	b := &batch{profile: s.p, consumer: p.rs.consumer, id: p.id, at: arrived}
	got := make(map[string]bool, len(here))
	for _, en := range here {
		got[entryID(en)] = true
	}
	for i := range s.found {
		if en := &s.found[i]; !got[en.id] {
			b.entries = append(b.entries, entry{id: en.id, was: en})
		}
	}
	s.others = false
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enlarge(s.p.target, arrived)
	if s.alone && len(b.entries) > 0 {
		s.p.target.giant = b.entries[0].id
	}
	e.cfg.Events.entries("claimed", s.p.target.stream, s.p.target.group, len(b.entries))
	e.giveBackLocked([]*batch{b})
}

// done notes what a search has come to.
func (p *Parked) done(s *search, b *batch) *batch {
	e := p.s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.p.hot == s.from && s.others {
		e.setHot(s.p, nil)
	}
	if b != nil {
		e.cfg.Events.entries("claimed", s.p.target.stream, s.p.target.group, b.ids())
	}
	return b
}

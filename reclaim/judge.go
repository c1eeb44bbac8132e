package reclaim

import (
	"context"
	"time"

	"streamproxy/internal/resp"
)

// form is the transaction by which newer workers reclaim: MULTI, SET NX of the
// lock, XAUTOCLAIM, the release script, EXEC.
type form struct {
	lock   lockCall
	claim  claimCall
	script lockScript
}

// formCommands is how many commands a form has.
const formCommands = 5

// parseForm recognizes a form. The lock's key must be one that a template makes of
// the claim's own stream and group: the scripts alone are no permission.
func (s *Session) parseForm(cmds []resp.Command) (f form, ok bool) {
	if len(cmds) != formCommands || kindOf(cmds[1].Arg(0)) != kindSet ||
		kindOf(cmds[2].Arg(0)) != kindClaim || kindOf(cmds[3].Arg(0)) != kindEvalSHA {
		return f, false
	}
	sc, ok := parseScript(cmds[3])
	if !ok || sc.script != scriptRelease || len(sc.rest) > 0 {
		return f, false
	}
	if f.lock, ok = parseLock(cmds[1]); !ok {
		return f, false
	}
	if f.claim, ok = parseClaim(cmds[2]); !ok {
		return f, false
	}
	f.script = sc.script
	if string(sc.key) != string(f.lock.key) || string(sc.token) != string(f.lock.token) {
		return f, false
	}
	for _, k := range lockKeys(s.e.cfg.Locks, f.claim.stream, f.claim.group) {
		if k == string(f.lock.key) {
			return f, true
		}
	}
	return f, false
}

// manner is how a claim was asked for, and so how it is answered.
type manner struct {
	name  string
	wrap  func(claim []byte) []byte
	watch func(c claimCall) *Watch
	// ahead is sent before the command where it is forwarded.
	ahead  []byte
	aheadN int
}

// claim judges a plain XAUTOCLAIM.
func (s *Session) claim(cmd resp.Command) Verdict {
	c, ok := parseClaim(cmd)
	if !ok {
		chase := s.pursuit(cmd)
		return s.after(s.takeListed(cmd), func() Verdict { return s.forward("form").also(chase) })
	}
	judge := func() Verdict {
		return s.judge(c, manner{
			name:  "xautoclaim",
			wrap:  func(b []byte) []byte { return b },
			watch: s.watchClaim,
		})
	}
	if c.minIdle < MinIdle {
		chase := s.pursuit(cmd)
		return s.after(s.takeListed(cmd), func() Verdict { return judge().also(chase) })
	}
	return judge()
}

// form judges the whole transaction around one.
func (s *Session) form(f form) Verdict {
	return s.judge(f.claim, manner{
		name: "multi", wrap: asForm, watch: s.watchForm,
		ahead: loadRelease, aheadN: 1,
	})
}

// judge decides about a claim: answered from what is held for its consumer, from a
// round that found nothing, from a claim made now, or by the server.
func (s *Session) judge(c claimCall, m manner) Verdict {
	e := s.e
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	pass := func(reason string) Verdict {
		e.cfg.Events.forwarded(reason)
		return Verdict{Ahead: m.ahead, AheadN: m.aheadN, Watch: m.watch(c)}
	}
	if c.minIdle < MinIdle {
		return pass("min_idle")
	}
	cons, rs := s.claiming(c, now)
	if rs == nil {
		return pass("unknown")
	}
	tk := targetKey{s.id.DB, s.id.User, c.stream, c.group}
	t := e.targets[tk]
	if t != nil {
		t.asked = now
	}
	if b := cons.held[c.stream]; b != nil {
		return s.fetch(b, c, m)
	}
	if e.draining {
		return pass("draining")
	}
	if t == nil || t.profiles[c.minIdle] == nil {
		if l := s.learningOf(c); l != nil {
			return s.await(l, func() Verdict { return s.judge(c, m) })
		}
		if now.Before(e.denied[tk]) {
			return pass("denied")
		}
		return pass("unknown")
	}
	p := t.profiles[c.minIdle]
	s.join(rs, p, now)
	if !c.fromStart() && c.start != cons.cursors[c.stream] {
		return pass("start")
	}
	found := p.temper(now)
	if found == hot && e.faulty("cold") {
		found = cold
	}
	switch {
	case found == unknown:
		e.hurry(p, now)
		return pass("expired")
	case e.cfg.Mode == Observe:
		return s.observe(p, m, pass("observe"))
	case found == cold:
		e.cfg.Events.local(m.name)
		cons.forgetCursor(c.stream)
		return answer(m.wrap(p.empty))
	case t.isLarge(now):
		return pass("large")
	default:
		return s.deferred(func(ctx context.Context) Verdict { return s.claimNow(ctx, p, cons, c, m) })
	}
}

// claiming finds who makes a claim, and what it reads along with the claim's stream; rs is nil if
// that is not to be remembered. The lock is held.
func (s *Session) claiming(c claimCall, now time.Time) (cons *consumer, rs *readSet) {
	if tooLong(c.stream, c.group, c.consumer) {
		return nil, nil
	}
	if cons = s.consumer(c.group, c.consumer); cons != nil {
		rs = cons.touch(c.stream, s.id, now)
	}
	return cons, rs
}

// learningOf finds the learning that a claim has to wait for. The lock is held.
func (s *Session) learningOf(c claimCall) *learning {
	if s.parting.Load() {
		return nil
	}
	for _, l := range s.e.learnings {
		if l.id.DB == s.id.DB && l.id.User == s.id.User && l.group == c.group &&
			l.minIdle == c.minIdle && l.targets[c.stream] {
			return l
		}
	}
	return nil
}

// observe adds to what a forwarded claim's watch does: was the answer that would
// have been given here the server's? Only a cold answer is a claim of ours about
// what the server would say; what is hot would have been asked there.
func (s *Session) observe(p *profile, m manner, v Verdict) Verdict {
	if p.hot != nil {
		return v
	}
	events, want, inner := &s.e.cfg.Events, m.wrap(p.empty), v.Watch.seen
	v.Watch.seen = func(reply []byte) {
		if len(reply) > 0 {
			events.observed(m.name, string(reply) != string(want))
		}
		inner(reply)
	}
	return v
}

// watchClaim learns from the server's own answer to an XAUTOCLAIM.
func (s *Session) watchClaim(c claimCall) *Watch {
	id := s.id
	return &Watch{Whole: true, seen: func(reply []byte) { s.claimSeen(id, c, reply) }}
}

// watchForm does the same for a form: five replies, of which EXEC's counts.
func (s *Session) watchForm(c claimCall) *Watch {
	id := s.id
	return &Watch{Whole: true, seen: func(reply []byte) {
		list, err := frames(reply, formCommands)
		if err != nil {
			return
		}
		done, err := elements(list[formCommands-1])
		if err != nil || len(done) != 3 {
			return
		}
		s.e.mu.Lock()
		s.e.noteScript(id.User, scriptRelease, !isError(done[2]))
		s.e.mu.Unlock()
		s.claimSeen(id, c, done[1])
	}}
}

// claimSeen takes the server's answer to a claim that was forwarded.
func (s *Session) claimSeen(id Identity, c claimCall, reply []byte) {
	e := s.e
	tk := targetKey{id.DB, id.User, c.stream, c.group}
	e.mu.Lock()
	defer e.mu.Unlock()
	if isError(reply) {
		e.refused(tk, errorCode(reply), time.Now())
		return
	}
	parts, err := elements(reply)
	if err != nil || len(parts) < 2 || len(parts) > 3 {
		return
	}
	cons := e.consumers[consumerKey{id.DB, id.User, c.group, c.consumer}]
	if cons == nil || c.minIdle < MinIdle || tooLong(c.stream) {
		return // it has left meanwhile, or is not known
	}
	cons.setCursor(c.stream, textOf(parts[0]))
	now := time.Now()
	rs := cons.readingOf(c.stream, id, now)
	if rs == nil {
		return
	}
	rs.proven = true
	if t := e.targets[tk]; t == nil || t.profiles[c.minIdle] == nil {
		e.learn(s, rs, c.minIdle, now)
	}
}

// setCursor remembers what the consumer was told to go on from.
func (c *consumer) setCursor(stream, cursor string) {
	c.forgetCursor(stream)
	if cursor == "0-0" || cursor == "" || c.memory.full() {
		return
	}
	c.cursors[stream] = cursor
	c.charge(noteBytes + len(stream) + len(cursor))
}

// forgetCursor forgets it.
func (c *consumer) forgetCursor(stream string) {
	if cursor, ok := c.cursors[stream]; ok {
		delete(c.cursors, stream)
		c.charge(-(noteBytes + len(stream) + len(cursor)))
	}
}

// refused ends what rests on something that the server has just denied. The lock
// is held.
func (e *Engine) refused(tk targetKey, code string, now time.Time) {
	switch code {
	case "NOPERM":
		e.deny(tk, now.Add(deniedFor*e.cfg.Interval))
	case "NOGROUP", "WRONGTYPE":
	default:
		return
	}
	if t := e.targets[tk]; t != nil {
		for _, p := range t.profiles {
			e.endProfile(p)
		}
	}
}

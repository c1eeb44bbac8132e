package reclaim

import (
	"bytes"
	"time"

	"streamproxy/internal/resp"
)

// lastRead remembers how a session's XREADGROUP was understood: a worker sends the
// same bytes all its life.
type lastRead struct {
	raw   []byte
	call  groupRead
	fresh []string
	key   string
	size  int
}

// maxLastRead bounds the bytes that are remembered per session.
const maxLastRead = 16 << 10

// parseRead reads an XREADGROUP, or recalls what it was when it came last.
func (s *Session) parseRead(cmd resp.Command) (*lastRead, bool) {
	if bytes.Equal(cmd.Raw, s.last.raw) && len(cmd.Raw) > 0 {
		return &s.last, true
	}
	call, ok := parseGroupRead(cmd)
	if !ok {
		return nil, false
	}
	l := lastRead{call: call, fresh: call.freshStreams()}
	l.key = setKey(l.fresh)
	if len(cmd.Raw) <= maxLastRead && !s.e.memory.full() {
		l.raw = bytes.Clone(cmd.Raw)
		l.size = lastReadBytes + 2*len(l.raw) + lastMemberBytes*len(call.streams)
		s.remember(l)
		return &s.last, true
	}
	return &l, true
}

// remember replaces the last read.
func (s *Session) remember(l lastRead) {
	s.e.memory.add(l.size - s.last.size)
	s.last = l
}

// read judges an XREADGROUP: who reads what is how a pass is known before it comes.
func (s *Session) read(cmd resp.Command) Verdict {
	l, ok := s.parseRead(cmd)
	if !ok {
		return Verdict{}
	}
	if moved := s.takeHistory(cmd); len(moved) > 0 {
		return s.after(moved, pass)
	}
	if len(l.fresh) == 0 || len(l.fresh) != len(l.call.streams) || tooLong(l.call.group, l.call.consumer) || tooLong(l.fresh...) {
		return Verdict{}
	}
	e := s.e
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	c := s.consumer(l.call.group, l.call.consumer)
	if c == nil {
		return Verdict{}
	}
	rs := c.reading(l.key, l.fresh, s.id, now)
	if rs == nil {
		return Verdict{}
	}
	s.adopt(rs, now)
	var v Verdict
	if l.call.blocks && !l.call.noack && !l.call.claims && e.cfg.Mode == On && !e.draining && !e.memory.full() {
		v.Parked = e.park(s, rs, l.call, now)
	}
	if rs.proven {
		c.last = rs
	} else {
		v.Watch = &Watch{seen: func(reply []byte) { e.readSeen(rs, reply) }}
	}
	return v
}

// readSeen takes the reply to a read whose streams are not known yet.
func (e *Engine) readSeen(rs *readSet, reply []byte) {
	if len(reply) == 0 || isError(reply) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	rs.proven = true
	rs.consumer.last = rs
}

// adopt puts what a consumer reads under the rounds that there are for its streams
// already, or for which the operator has made a rule: a rule's learning call proves
// what the client itself never shows. The lock is held.
func (s *Session) adopt(rs *readSet, now time.Time) {
	e := s.e
	if len(rs.sweeps) > 0 || now.Before(rs.again) || e.draining {
		return
	}
	c := rs.consumer
	rs.again = now.Add(e.cfg.Interval)
	if rule, ok := e.cfg.rule(c.group); ok {
		e.learn(s, rs, rule.MinIdle, now)
	}
	if t := e.targets[targetKey{c.db, c.user, rs.streams[0], c.group}]; t != nil {
		for minIdle := range t.profiles {
			e.learn(s, rs, minIdle, now)
		}
	}
}

// join makes a consumer that asks about a known profile one of those for whom it is
// probed. The lock is held.
func (s *Session) join(rs *readSet, p *profile, now time.Time) {
	for w := range rs.sweeps {
		if w.minIdle == p.minIdle {
			return
		}
	}
	if rs.proven {
		if !now.Before(rs.again) {
			rs.again = now.Add(s.e.cfg.Interval)
			s.e.learn(s, rs, p.minIdle, now)
		}
		return
	}
	for w := range p.sweeps { // what it reads will show; until then any will do
		w.readers[rs] = struct{}{}
		rs.sweeps[w] = struct{}{}
		return
	}
}

// takeHistory takes what is held for the consumer whose history a read asks for, and what
// was its own before: the server shows it that, and it must see it as it would without us.
// Nothing need be known here of a consumer that comes back.
func (s *Session) takeHistory(cmd resp.Command) (taken []*batch) {
	if s.e.untouched() {
		return nil
	}
	l, ok := s.parseRead(cmd)
	if !ok || len(l.fresh) == len(l.call.streams) {
		return nil
	}
	e := s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.takeLost(&loss{
		db: s.id.DB, streams: l.call.streams, group: l.call.group, named: true, consumer: &l.call.consumer,
	})
}

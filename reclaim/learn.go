package reclaim

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

// learnKey names a learning: one at a time for a user, a set of streams and a
// min-idle.
type learnKey struct {
	user  User
	sweep string
}

// learning is the question, under way, whether this user may reclaim these
// streams, and what there is to be reclaimed. Commands about them wait for it.
type learning struct {
	id       Identity
	rs       *readSet
	consumer string
	group    string
	minIdle  time.Duration
	sweep    string
	streams  []string
	targets  map[string]bool // the streams
	locks    []string        // their lock keys
	by       *Session        // whose claim or read began it; nil: nobody's
	done     chan struct{}
}

// maxLearnings and maxSessionLearnings bound how many learnings are under way at a time, and
// how many of them one connection has begun. What is over that is forwarded, and learned the
// next time that it is asked for.
const (
	maxLearnings        = 128
	maxSessionLearnings = 16
)

// learnPatience bounds how long a command waits for a learning.
const learnPatience = 2 * time.Second

// deniedFor is in how many intervals a user is not asked again about what the
// server's ACL refuses.
const deniedFor = 10

// maxID is behind every pending entry: an XAUTOCLAIM from there examines nothing,
// and yet proves that the user may, that the stream and the group are there, and
// how this server writes "nothing".
const maxID = "18446744073709551615-18446744073709551615"

// learn asks about the streams of a set that have no result; by is whose command is the
// reason, nil for nobody's. Nothing is asked for a client that has gone. The lock is held.
func (e *Engine) learn(by *Session, rs *readSet, minIdle time.Duration, now time.Time) {
	c := rs.consumer
	if minIdle < MinIdle || e.draining || e.closed || by != nil && (by.left || by.parting.Load()) {
		return
	}
	l := &learning{
		id: rs.id, rs: rs, by: by, consumer: c.name, group: c.group, minIdle: minIdle,
		sweep:   sweepKey(c.db, c.group, minIdle, rs.streams),
		targets: make(map[string]bool),
		done:    make(chan struct{}),
	}
	k := learnKey{c.user, l.sweep}
	if e.learnings[k] != nil {
		return
	}
	if e.sweeps[l.sweep] == nil && !e.fresh.AllowN(now, min(len(rs.streams), freshBurst)) {
		rs.again = now.Add(e.cfg.Interval) // the server answers until then
		return
	}
	for _, s := range rs.streams {
		tk := targetKey{c.db, c.user, s, c.group}
		if l.targets[s] || now.Before(e.denied[tk]) {
			continue
		}
		if t := e.targets[tk]; t != nil && t.profiles[minIdle] != nil && t.profiles[minIdle].temper(now) != unknown {
			continue
		}
		l.targets[s] = true
		l.streams = append(l.streams, s)
		l.locks = append(l.locks, lockKeys(e.cfg.Locks, s, c.group)...)
	}
	if e.profiles+len(l.streams) > maxProfiles || e.memory.full() && (len(l.streams) > 0 || e.sweeps[l.sweep] == nil) {
		return
	}
	if len(l.streams) == 0 {
		e.watchSet(rs, minIdle, now)
		return
	}
	if len(e.learnings) >= maxLearnings || by != nil && by.learnings >= maxSessionLearnings {
		rs.again = time.Time{}
		return
	}
	e.learnings[k] = l
	l.count(e, 1)
	e.jobLocked(func(ctx context.Context) {
		err := e.ask(ctx, l)
		e.mu.Lock()
		if d := (errDenied{}); errors.As(err, &d) {
			e.denyAll(l, now)
		}
		delete(e.learnings, k)
		l.count(e, -1)
		e.mu.Unlock()
		close(l.done)
		if err != nil {
			e.cfg.Logger.Warn("streams could not be learned", "group", l.group, "streams", len(l.streams), "error", err)
		}
	})
}

// count enters a learning where it is looked for, or takes it out again. The lock is held.
func (l *learning) count(e *Engine, n int) {
	e.memory.add(n * sizeOf(l.streams, learningBytes))
	if l.by != nil {
		l.by.learnings += n
	}
	for _, key := range l.locks {
		if n > 0 {
			e.asking.add(key, l)
		} else {
			e.asking.remove(key, l)
		}
	}
}

// denyAll has a learning's streams not asked about for a while. The lock is held.
func (e *Engine) denyAll(l *learning, now time.Time) {
	for _, s := range l.streams {
		e.deny(targetKey{l.id.DB, l.id.User, s, l.group}, now.Add(deniedFor*e.cfg.Interval))
	}
}

// ask sends one pipeline with two questions per stream.
func (e *Engine) ask(ctx context.Context, l *learning) error {
	if err := e.learnClock(ctx); err != nil {
		return err
	}
	sent := time.Now()
	e.mu.Lock()
	now := e.clock.server(sent)
	e.mu.Unlock()
	var commands []byte
	for _, s := range l.streams {
		commands = resp.AppendCommand(commands, proofOf(s, l.group, l.consumer, l.minIdle)...)
		commands = appendProbe(commands, s, l.group, l.minIdle, probeEnd(now, l.minIdle))
	}
	replies, err := e.up.Do(ctx, l.id, commands, 2*len(l.streams))
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.learned(l, replies, sent)
	return nil
}

// learned takes the answers to a learning's questions. The lock is held.
func (e *Engine) learned(l *learning, replies [][]byte, sent time.Time) {
	denied := 0
	got := 0
	for i, s := range l.streams {
		tk := targetKey{l.id.DB, l.id.User, s, l.group}
		empty, probe := replies[2*i], replies[2*i+1]
		if errorCode(empty) == "NOPERM" || errorCode(probe) == "NOPERM" {
			e.deny(tk, sent.Add(deniedFor*e.cfg.Interval))
			denied++
			continue
		}
		h, ok := parseProbe(probe, sent)
		if !ok || !emptyClaim(empty) {
			continue
		}
		p := e.profileFor(tk, l.minIdle, slices.Clone(empty))
		e.result(p, sent, sent.Add(validity*e.interval(l.minIdle)), h)
		got++
	}
	if denied > 0 {
		e.cfg.Logger.Warn("not allowed to ask about pending entries; their commands are forwarded",
			"user", l.id.User.Name, "group", l.group, "streams", denied)
	}
	if got == 0 {
		return
	}
	e.watchSet(l.rs, l.minIdle, sent)
	e.poke()
}

// watchSet puts a consumer's streams under the rounds of a sweep. The lock is held.
func (e *Engine) watchSet(rs *readSet, minIdle time.Duration, now time.Time) {
	w := e.sweepFor(rs, minIdle, now)
	w.readers[rs] = struct{}{}
	rs.sweeps[w] = struct{}{}
	for i, s := range w.streams {
		t := e.targets[targetKey{rs.consumer.db, rs.consumer.user, s, rs.consumer.group}]
		if t == nil || t.profiles[minIdle] == nil {
			continue
		}
		w.add(i, t.profiles[minIdle])
	}
	all := make(map[string]bool, len(rs.streams))
	for _, s := range rs.streams {
		all[s] = true
	}
	for _, other := range rs.consumer.reads {
		if other == rs || len(other.sweeps) == 0 || !within(other.streams, all) {
			continue
		}
		for v := range other.sweeps {
			if v.minIdle == minIdle && v != w {
				delete(other.sweeps, v)
				delete(v.readers, other)
			}
		}
	}
}

// within reports whether all of a are among b.
func within(a []string, b map[string]bool) bool {
	for _, s := range a {
		if !b[s] {
			return false
		}
	}
	return true
}

// awaitLearning defers a lock step about a stream that is being learned; again
// judges it afterwards. The lock is held.
func (s *Session) awaitLearning(key []byte, cmd resp.Command, again func(resp.Command) Verdict) Verdict {
	if s.parting.Load() {
		return Verdict{}
	}
	for _, l := range s.e.asking.of(key) {
		if l.id.DB == s.id.DB && l.id.User == s.id.User {
			own := cloneCommand(cmd)
			return s.await(l, func() Verdict { return again(own) })
		}
	}
	return Verdict{}
}

// await defers a command until a learning has ended. What then is judged as
// deferred is carried out at once.
func (s *Session) await(l *learning, again func() Verdict) Verdict {
	return s.deferred(func(ctx context.Context) Verdict {
		patience := time.NewTimer(learnPatience)
		defer patience.Stop()
		select {
		case <-l.done:
		case <-patience.C:
			return s.forward("unknown")
		case <-Client(ctx).Done():
			return s.forward("unknown")
		case <-ctx.Done():
			return s.forward("unknown")
		}
		return s.final(ctx, again())
	})
}

// appendProbe asks for the first pending entry that has been idle long enough,
// among those that are old enough.
func appendProbe(dst []byte, stream, group string, minIdle time.Duration, end string) []byte {
	return resp.AppendCommand(dst, "XPENDING", stream, group, "IDLE", millis(minIdle), "-", end, "1")
}

// probeEnd is the last id that an entry can have that is old enough. Looking no
// further spares the server a walk over everything that is being worked on.
func probeEnd(server time.Time, minIdle time.Duration) string {
	return strconv.FormatInt(max(server.Add(-minIdle).UnixMilli(), 0), 10)
}

// parseProbe reads the reply to a probe asked at a time of ours; h is nil if it
// found nothing.
func parseProbe(raw []byte, at time.Time) (h *hit, ok bool) {
	list, ok := parsePending(raw)
	if !ok || len(list) == 0 {
		return nil, ok
	}
	return &hit{id: list[0].id, owner: shown(list[0].owner), count: list[0].count, at: at}, true
}

// pendingEntry is one line of XPENDING's long form.
type pendingEntry struct {
	id, owner string
	idle      time.Duration
	count     int64
}

func parsePending(raw []byte) (list []pendingEntry, ok bool) {
	v, _, err := resp.Parse(raw)
	if err != nil || v.Kind != '*' {
		return nil, false
	}
	for _, line := range v.Elems {
		if len(line.Elems) != 4 {
			return nil, false
		}
		idle, err := strconv.ParseInt(string(line.Elems[2].Text), 10, 64)
		if err != nil {
			return nil, false
		}
		count, err := strconv.ParseInt(string(line.Elems[3].Text), 10, 64)
		if err != nil {
			return nil, false
		}
		list = append(list, pendingEntry{
			id:    string(line.Elems[0].Text),
			owner: string(line.Elems[1].Text),
			idle:  time.Duration(idle) * time.Millisecond,
			count: count,
		})
	}
	return list, true
}

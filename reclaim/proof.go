package reclaim

import (
	"context"
	"slices"
	"time"

	"streamproxy/internal/resp"
)

// A look asks what is pending, which is a right of its own, in the name of one user and by
// one proxy. Whether each user may still reclaim is asked by each proxy for its own, with
// the XAUTOCLAIM that examines nothing: a few streams in each round, in turn.

const (
	// proofRounds is in how many rounds a user is asked about every stream.
	proofRounds = 200
	// proofIntervals is for how many intervals after its last command a consumer is spoken
	// for: to the server it is as if it had asked itself.
	proofIntervals = 2
)

// proof is the question about some streams, in the name of one connection's identity.
type proof struct {
	id       Identity
	profiles []*profile
	commands []byte
}

// prove asks about the streams whose turn it is. Of a user who may not reclaim one of
// them, all are asked about at once.
func (e *Engine) prove(ctx context.Context, w *sweep) {
	if e.cfg.Mode != On {
		return
	}
	var turn, rest []*profile
	e.mu.Lock()
	for range len(w.streams)/proofRounds + 1 {
		w.turn = (w.turn + 1) % len(w.streams)
		turn = append(turn, w.profiles[w.turn]...)
	}
	e.mu.Unlock()
	denied := e.askAgain(ctx, w, turn)
	if len(denied) == 0 {
		return
	}
	e.mu.Lock()
	for _, list := range w.profiles {
		for _, p := range list {
			if slices.Contains(denied, p.target.user) {
				rest = append(rest, p)
			}
		}
	}
	e.mu.Unlock()
	e.askAgain(ctx, w, rest)
	for _, u := range denied {
		e.cfg.Logger.Warn("a user may not reclaim any more; its commands about streams that are denied are forwarded",
			"user", u.Name, "group", w.group)
	}
}

// askAgain ends the profiles that the server denies, and returns whose some were for want
// of a right. A server that does not answer denies nothing.
func (e *Engine) askAgain(ctx context.Context, w *sweep, list []*profile) (denied []User) {
	e.mu.Lock()
	questions := w.proofs(list, time.Now())
	e.mu.Unlock()
	for _, q := range questions {
		replies, err := e.up.Do(ctx, q.id, q.commands, len(q.profiles))
		if err != nil {
			continue
		}
		e.mu.Lock()
		for i, p := range q.profiles {
			code := errorCode(replies[i])
			e.refused(p.target.targetKey, code, time.Now())
			if code == "NOPERM" && !slices.Contains(denied, p.target.user) {
				denied = append(denied, p.target.user)
			}
		}
		e.mu.Unlock()
	}
	return denied
}

// proofs makes the questions about some profiles, each in the name of a consumer that reads
// the stream and has been here lately. The lock is held.
func (w *sweep) proofs(list []*profile, now time.Time) (questions []*proof) {
	by := make(map[Identity]*proof)
	for _, p := range list {
		rs := w.asker(p.target, now)
		if rs == nil {
			continue
		}
		q := by[rs.id]
		if q == nil {
			q = &proof{id: rs.id}
			by[rs.id] = q
			questions = append(questions, q)
		}
		q.profiles = append(q.profiles, p)
		q.commands = resp.AppendCommand(q.commands, proofOf(p.target.stream, w.group, rs.consumer.name, w.minIdle)...)
	}
	return questions
}

// asker finds a reader of a target that may be spoken for, nil if there is none.
func (w *sweep) asker(t *target, now time.Time) *readSet {
	for rs := range w.readers {
		if rs.live() && rs.consumer.user == t.user && now.Sub(rs.used) <= proofIntervals*w.interval && slices.Contains(rs.streams, t.stream) {
			return rs
		}
	}
	return nil
}

// proofOf is an XAUTOCLAIM that examines nothing.
func proofOf(stream, group, consumer string, minIdle time.Duration) []string {
	return []string{"XAUTOCLAIM", stream, group, consumer, millis(minIdle), maxID, "COUNT", "1"}
}

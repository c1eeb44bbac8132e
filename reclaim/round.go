package reclaim

import (
	"context"
	"errors"
	"slices"
	"time"
)

// runRound is one round of a sweep: as the lease's holder, ask the server about
// every stream and publish the result; else take over what the holder found.
func (e *Engine) runRound(ctx context.Context, w *sweep) {
	result, err := e.doRoundInTurn(ctx, w)
	e.mu.Lock()
	w.running = false
	if e.draining || e.sweeps[w.key] != w { // it may have got the lease all the same
		e.resignLocked(w)
	}
	if e.sweeps[w.key] == w {
		e.agenda.set(w, w.next(time.Now()))
	}
	warn := err != nil && !w.warned
	w.warned = err != nil
	e.mu.Unlock()
	e.cfg.Events.round(result)
	if warn {
		e.cfg.Logger.Warn("reclaim round failed; commands are forwarded once the last result is too old",
			"group", w.group, "streams", len(w.streams), "result", result, "error", err)
	}
	e.poke()
}

// roundsAtOnce bounds the rounds under way: one about hundreds of streams takes the processor for
// milliseconds, and as many as there are read sets would take it from everybody else.
const roundsAtOnce = 4

// doRoundInTurn is doRound, when there are not too many others.
func (e *Engine) doRoundInTurn(ctx context.Context, w *sweep) (result string, err error) {
	select {
	case e.rounds <- struct{}{}:
	case <-ctx.Done():
		return outcome(ctx.Err()), ctx.Err()
	}
	defer func() { <-e.rounds }()
	if result, err = e.doRound(ctx, w); err == nil {
		e.prove(ctx, w)
	}
	return result, err
}

func (e *Engine) doRound(ctx context.Context, w *sweep) (result string, err error) {
	if err := e.learnClock(ctx); err != nil {
		return outcome(err), err
	}
	t, err := e.take(ctx, w)
	if err != nil {
		e.led(w, false)
		return outcome(err), err
	}
	if !t.mine {
		e.led(w, false)
		e.follow(w, t.report)
		return "followed", nil
	}
	e.led(w, true)
	r, err := e.lead(ctx, w, t)
	if err != nil {
		e.resign(ctx, w)
		return outcome(err), err
	}
	stored, err := e.store(ctx, w, r, len(t.hints))
	if !stored {
		e.led(w, false)
	}
	if err != nil {
		return outcome(err), err
	}
	return "led", nil
}

// outcome is how an error is counted.
func outcome(err error) string {
	if d := (errDenied{}); errors.As(err, &d) {
		return "denied"
	}
	return "failed"
}

// led notes whether we hold the lease and says so when that changes.
func (e *Engine) led(w *sweep, leading bool) {
	e.mu.Lock()
	changed := w.leading != leading
	e.setLeading(w, leading)
	if changed {
		w.led = 0
		if !leading {
			e.silencePages(w)
		}
	}
	e.mu.Unlock()
	if changed {
		e.cfg.Logger.Info("reclaim lease changed", "held", leading, "group", w.group, "streams", len(w.streams), "lease", w.lease)
	}
}

// follow takes over the holder's result.
func (e *Engine) follow(w *sweep, r report) {
	if r.At == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.At == w.at && r.Round == w.round {
		return // read before
	}
	now := time.Now()
	at := e.clock.local(time.UnixMilli(r.At), now)
	if at.After(now) || now.Sub(at) > 2*w.interval {
		// No holder lets its result become so old, and none is from the future: the
		// server's clock was set. A result does not count for longer on account of that.
		e.clock.doubtful = true
		at = earlier(at, now)
	}
	w.recall(r)
	e.apply(w, r, at)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// recall takes over which streams need a closer look, in case the lease becomes
// ours.
func (w *sweep) recall(r report) {
	clear(w.watched)
	for _, pair := range r.Watched {
		if i := int(pair[0]); i >= 0 && i < len(w.streams) {
			w.watched[i] = time.Time{}
			if pair[1] != 0 {
				w.watched[i] = time.UnixMilli(pair[1])
			}
		}
	}
}

// apply makes a report the result of the sweep's profiles. at is when it was true,
// in our time. The lock is held.
func (e *Engine) apply(w *sweep, r report, at time.Time) {
	w.round, w.at = r.Round, r.At
	found := make(map[int]*hit, len(r.Hot))
	for _, h := range r.Hot {
		found[h.Stream] = &hit{id: h.ID, owner: string(h.Owner), count: h.Count, at: at}
	}
	skipped := make(map[int]bool, len(r.Skipped))
	for _, i := range r.Skipped {
		skipped[i] = true
	}
	valid := at.Add(validity * w.interval)
	for i, list := range w.profiles {
		if skipped[i] {
			continue
		}
		for _, p := range list {
			e.result(p, at, valid, found[i])
		}
	}
	e.cfg.Events.succeeded(time.UnixMilli(r.At))
}

// lead asks the server about every stream.
func (e *Engine) lead(ctx context.Context, w *sweep, t taken) (report, error) {
	e.mu.Lock()
	e.clock.set(t.server, t.sent)
	w.heed(t)
	plan := e.plan(w, t.server)
	e.mu.Unlock()
	r := report{By: e.cfg.Instance, Round: max(t.report.Round, w.round) + 1, At: t.server.UnixMilli()}
	if len(plan) == 0 {
		return r, errNoProber
	}
	for _, q := range plan {
		replies, err := e.up.Do(ctx, q.id, q.commands, q.n)
		if err != nil {
			return r, err
		}
		e.mu.Lock()
		q.read(e, w, &r, replies, t)
		e.mu.Unlock()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	w.led++
	w.sum(&r, plan)
	e.apply(w, r, t.sent)
	return r, nil
}

var errNoProber = errors.New("no user with a connection may ask about these streams")

// heed turns hints into streams that are watched.
func (w *sweep) heed(t taken) {
	if !w.leading || w.led == 0 {
		w.recall(t.report)
	}
	for _, s := range t.hints {
		if i, ok := w.number(s); ok {
			w.watch(i, t.server.Add(w.minIdle+w.interval))
		}
	}
	for i, until := range w.watched {
		if !until.IsZero() && t.server.After(until) {
			delete(w.watched, i)
		}
	}
}

// watch probes a stream to its end until then, a zero time being for ever.
func (w *sweep) watch(i int, until time.Time) {
	old, ok := w.watched[i]
	if !ok || !old.IsZero() && (until.IsZero() || until.After(old)) {
		w.watched[i] = until
	}
}

// number finds a stream in the sweep.
func (w *sweep) number(stream string) (int, bool) { return slices.BinarySearch(w.streams, stream) }

// sum completes a report with what was not asked and what is watched.
func (w *sweep) sum(r *report, plan []*questions) {
	asked := make(map[int]bool)
	for _, q := range plan {
		for _, i := range q.streams {
			asked[i] = true
		}
	}
	for i := range w.streams {
		if !asked[i] {
			r.Skipped = append(r.Skipped, i)
		}
	}
	for i, until := range w.watched {
		ms := int64(0)
		if !until.IsZero() {
			ms = until.UnixMilli()
		}
		r.Watched = append(r.Watched, [2]int64{int64(i), ms})
	}
	slices.SortFunc(r.Watched, func(a, b [2]int64) int { return int(a[0] - b[0]) })
}

package reclaim

import (
	"context"
	"slices"
	"time"
)

// A give-back makes an entry what it was before our claim: its owner's, as long
// idle as if nothing had happened, with its old delivery count. It must not touch
// an entry that somebody else has got meanwhile, nor bring a deleted consumer back
// to life.

// giveBack gives batches back in the background.
func (e *Engine) giveBack(batches []*batch) {
	if len(batches) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveBackLocked(batches)
}

func (e *Engine) giveBackLocked(batches []*batch) {
	if len(batches) > 0 {
		e.jobLocked(func(ctx context.Context) { e.restoreAll(ctx, batches) })
	}
}

// restoreAll gives batches back and waits until the server has them.
func (e *Engine) restoreAll(ctx context.Context, batches []*batch) {
	if e.faulty("forget") {
		return
	}
	for _, b := range batches {
		if err := e.restore(ctx, b); err != nil {
			t := b.profile.target
			e.cfg.Logger.Warn("claimed entries could not be given back; they wait for one more min-idle",
				"stream", t.stream, "group", t.group, "entries", b.ids(), "error", err)
		}
	}
}

// restore gives one batch back, trying again if the server cannot be reached.
func (e *Engine) restore(ctx context.Context, b *batch) error {
	t := b.profile.target
	r := &restoration{stream: t.stream, group: t.group, ours: b.consumer.name, at: b.at, entries: slices.Clone(b.entries)}
	err := restoreList(ctx, e.up, b.id, []*restoration{r})
	if err == nil {
		e.restored(b, r.n)
	}
	return err
}

// restored makes everybody look: the streams are hot here at once, and the holder
// of the lease is told. A probe that ends at the youngest id that is old enough
// would not see an entry whose idle time exceeds its age.
func (e *Engine) restored(b *batch, n int) {
	if n == 0 {
		return
	}
	p := b.profile
	e.cfg.Events.entries("given_back", p.target.stream, p.target.group, n)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, en := range b.entries {
		if en.was == nil {
			continue
		}
		h := &hit{id: en.id, owner: shown(en.was.owner), count: en.was.count, at: time.Now()}
		if p.hot == nil || lessID(h.id, p.hot.id) {
			e.setHot(p, h)
		} else {
			again := *p.hot // a claim under way must not end this one
			again.at = h.at
			e.setHot(p, &again)
		}
		break
	}
	e.hint(p.target.db, p.target.stream, p.target.group)
	e.poke()
}

package reclaim

import (
	"context"
	"errors"
	"slices"
	"time"

	"streamproxy/internal/resp"
)

// renew lets the idle time of what was held for a while begin anew, and hands it out: a
// round trip, as a claim would have been. Without a delivery being counted (JUSTID), and
// guarded by the time that has passed: whoever has got an entry since has reset its idle
// time to less. It cannot have been long on its way, or what it brings is not handed out.
func (s *Session) renew(ctx context.Context, b *batch, c claimCall, m manner) Verdict {
	e := s.e
	again := func() Verdict { return s.judge(c, m) }
	t, sent := b.profile.target, time.Now()
	args := []string{"XCLAIM", t.stream, t.group, b.consumer.name, millis(sent.Sub(b.at))}
	for _, en := range b.entries {
		if en.id != "" {
			args = append(args, en.id)
		}
	}
	replies, err := e.up.Do(ctx, s.id, resp.AppendCommand(nil, append(args, "JUSTID")...), 1)
	if err != nil && !errors.Is(err, ErrNotSent) {
		return Verdict{Action: Fail, Err: err}
	}
	if err == nil {
		if ids, err := elements(replies[0]); err == nil {
			b.renewed(ids, sent, time.Now())
		}
	}
	if b.stale() {
		return s.final(ctx, s.after([]*batch{b}, again))
	}
	if b.ids() == 0 {
		return s.final(ctx, again())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return s.deliver(b, c, m)
}

// renewed keeps of a batch what is still ours, now idle since the claim sent then.
func (b *batch) renewed(ids [][]byte, sent, arrived time.Time) {
	ours := make(map[string]bool, len(ids))
	for _, id := range ids {
		ours[textOf(id)] = true
	}
	b.entries = slices.DeleteFunc(b.entries, func(en entry) bool { return en.id != "" && !ours[en.id] })
	for _, en := range b.entries {
		if en.was != nil {
			en.was.idle += arrived.Sub(b.at)
		}
	}
	b.sent, b.at = sent, arrived
}

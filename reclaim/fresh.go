package reclaim

import (
	"context"
	"time"

	"streamproxy/internal/resp"
)

// maxAge bounds what is said of an entry's age. Ids that are made by hand can be as old
// as the epoch, and an idle time from before it the server takes for none.
const maxAge = 365 * 24 * time.Hour

// ReturnUnread is the function of that name for a read of this engine's server. Entries
// of a stream that has a profile are given back so that the next one who asks gets them
// at once, as nobody will ever work on them, and everybody is made to look.
func (e *Engine) ReturnUnread(ctx context.Context, id Identity, cmd resp.Command, reply []byte, at time.Time) error {
	r, ok := parseGroupRead(cmd)
	if !ok {
		return nil
	}
	var given []streamEntries
	e.mu.Lock()
	now := time.Now()
	list := unread(r, reply, at, func(s streamEntries) time.Duration {
		p := e.longest(targetKey{id.DB, id.User, string(s.key), r.group})
		if p == nil || e.cfg.Mode != On {
			return 0
		}
		given = append(given, s)
		return max(e.age(s.ids, now), p.minIdle)
	})
	e.mu.Unlock()
	err := restoreList(ctx, e.up, id, list)
	e.gaveFresh(id, r, given) // also where it is not known: a look costs little
	return err
}

// longest is a target's profile with the longest min-idle, nil if it has none. The
// lock is held.
func (e *Engine) longest(k targetKey) (best *profile) {
	t := e.targets[k]
	if t == nil {
		return nil
	}
	for _, p := range t.profiles {
		if best == nil || p.minIdle > best.minIdle {
			best = p
		}
	}
	return best
}

// age is how old the youngest of some entries is, as far as ids and the server's
// clock tell. The lock is held.
func (e *Engine) age(ids []string, now time.Time) time.Duration {
	if e.clock.ours.IsZero() {
		return 0
	}
	ms, _ := splitID(ids[len(ids)-1])
	return min(e.clock.server(now).Sub(time.UnixMilli(int64(min(ms, uint64(maxMillis))))), maxAge)
}

// gaveFresh makes the streams hot here, and has the holder of the lease look where
// an entry that is more idle than old would not be seen.
func (e *Engine) gaveFresh(id Identity, r groupRead, given []streamEntries) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range given {
		t := e.targets[targetKey{id.DB, id.User, string(s.key), r.group}]
		if t == nil {
			continue
		}
		for _, p := range t.profiles {
			if p.hot == nil || lessID(s.ids[0], p.hot.id) {
				e.setHot(p, &hit{id: s.ids[0], owner: r.consumer, at: time.Now()})
			}
		}
		e.hint(id.DB, t.stream, r.group)
	}
	e.poke()
}

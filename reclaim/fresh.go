package reclaim

import (
	"time"

	"streamproxy/internal/resp"
)

// maxAge bounds what is said of an entry's age. Ids that are made by hand can be as old
// as the epoch, and an idle time from before it the server takes for none.
const maxAge = 365 * 24 * time.Hour

// Unread is the function of that name for a read of this engine's server. Entries of
// a stream that has a profile are given back so that the next one who asks gets them
// at once, as nobody will ever work on them. told is to be called when the commands
// have been answered: it makes everybody look.
func (e *Engine) Unread(id Identity, cmd resp.Command, reply []byte) (commands []byte, n int, told func()) {
	r, ok := parseGroupRead(cmd)
	if !ok {
		return nil, 0, func() {}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	var given []streamEntries
	commands, n = unread(r, reply, func(s streamEntries) []string {
		p := e.longest(targetKey{id.DB, id.User, string(s.key), r.group})
		if p == nil || e.cfg.Mode != On {
			return nil
		}
		given = append(given, s)
		return []string{"IDLE", millis(max(e.age(s.ids, now), p.minIdle))}
	})
	return commands, n, func() { e.gaveFresh(id, r, given) }
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
				p.hot = &hit{id: s.ids[0], owner: r.consumer, at: time.Now()}
			}
		}
		e.hint(id.DB, t.stream, r.group)
	}
	e.countHot()
	e.poke()
}

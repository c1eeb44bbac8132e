package reclaim

import (
	"strings"
	"time"
)

// targetKey names a stream as one user sees it in one group.
type targetKey struct {
	db            int
	user          User
	stream, group string
}

// target is a stream with at least one profile.
type target struct {
	targetKey
	profiles map[time.Duration]*profile
	locks    []string // the keys by which clients lock a reclaim of it
	// asked is when anybody here last asked for reclaimable entries: XAUTOCLAIM, the
	// MULTI form, or a look at the lock.
	asked time.Time
	// local: until then a lock sequence that began here goes on here, whatever
	// becomes of the profiles.
	local time.Time
	// large: until then claims are left to the server, because entries were too large.
	large time.Time
	// entrySize is about how many bytes one of its entries takes in a reply; 0: it is not known.
	entrySize int
	// giant is an entry that is too large even alone: blocked readers get what is behind it.
	giant string
	// holding counts the batches held for consumers that will come for them.
	holding int
	size    int
}

// lockPatience is how long after a look at the lock the rest of its sequence is
// expected.
const lockPatience = time.Minute

// profile is a target at one min-idle: what this user has proved it may reclaim,
// and what the last round found there.
type profile struct {
	target  *target
	minIdle time.Duration
	own     bool   // a parked reader may get its own consumer's entries
	empty   []byte // the server's own reply to an XAUTOCLAIM that finds nothing
	sweeps  map[*sweep]struct{}

	valid time.Time // the result counts until then
	hot   *hit      // nil: the result is that there is nothing
	round uint64    // counts results
}

// hit is the first entry that was found reclaimable. Hits are compared by address:
// what a claim saw ends the hit that it started from and no other.
type hit struct {
	id    string
	owner string
	count int64
	at    time.Time // no older result takes it back
}

// temper is what is known of a target or profile.
type temper uint8

const (
	unknown temper = iota // no result that counts
	cold                  // nothing to be reclaimed
	hot
)

func (p *profile) temper(now time.Time) temper {
	switch {
	case !now.Before(p.valid):
		return unknown
	case p.hot != nil:
		return hot
	default:
		return cold
	}
}

// temper is unknown if it is so at any min-idle, and cold only if it is at all.
func (t *target) temper(now time.Time) temper {
	all := unknown
	for _, p := range t.profiles {
		switch p.temper(now) {
		case unknown:
			return unknown
		case hot:
			all = hot
		case cold:
			all = max(all, cold)
		}
	}
	if all == cold && t.holding > 0 {
		return hot // somebody's entries wait here
	}
	return all
}

// result takes over what a probe of time at has found, h being nil for nothing. The lock
// is held.
func (e *Engine) result(p *profile, at, valid time.Time, h *hit) {
	if valid.After(p.valid) {
		p.valid = valid
	}
	p.round++
	if h == nil && p.hot != nil && p.hot.at.After(at) {
		return // it has become hot since
	}
	e.setHot(p, h)
}

// setHot makes h the first entry of a profile that is known to be reclaimable, nil being
// none, and reports how many profiles are hot. What has ended does not count. The lock is
// held.
func (e *Engine) setHot(p *profile, h *hit) {
	was := p.hot != nil
	if p.hot = h; was == (h != nil) || p.target.profiles[p.minIdle] != p {
		return
	}
	if was {
		e.hots--
	} else {
		e.hots++
	}
	e.warm.Store(int64(e.hots))
	e.cfg.Events.hot(e.hots)
}

// lockKeys renders the templates for one stream and group.
func lockKeys(templates []string, stream, group string) []string {
	keys := make([]string, 0, len(templates))
	r := strings.NewReplacer("{group}", group, "{stream}", stream)
	for _, t := range templates {
		keys = append(keys, r.Replace(t))
	}
	return keys
}

// profileFor returns a profile, made if it is not there. It is called when the
// server has answered this user's own XAUTOCLAIM with empty. The lock is held.
func (e *Engine) profileFor(k targetKey, minIdle time.Duration, empty []byte) *profile {
	t := e.targets[k]
	if t == nil {
		t = &target{
			targetKey: k,
			profiles:  make(map[time.Duration]*profile),
			locks:     lockKeys(e.cfg.Locks, k.stream, k.group),
		}
		e.targets[k] = t
		t.size = targetBytes + len(k.stream) + len(k.group) + sizeOf(t.locks, noteBytes)
		e.memory.add(t.size)
		e.known.add(k.stream, t)
		for _, lock := range t.locks {
			e.locks.add(lock, t)
		}
	}
	p := t.profiles[minIdle]
	if p == nil {
		p = &profile{target: t, minIdle: minIdle, sweeps: make(map[*sweep]struct{})}
		if r, ok := e.cfg.rule(k.group); ok {
			p.own = r.Own
		}
		t.profiles[minIdle] = p
		e.profiles++
		e.memory.add(profileBytes)
	}
	p.empty = empty
	return p
}

// endProfile forgets a profile. Tokens that were given out stay good, batches that
// are held still find their consumer. The lock is held.
func (e *Engine) endProfile(p *profile) {
	t := p.target
	if t.profiles[p.minIdle] != p {
		return
	}
	p.valid = time.Time{}
	e.setHot(p, nil)
	delete(t.profiles, p.minIdle)
	e.profiles--
	e.memory.add(-profileBytes)
	for w := range p.sweeps {
		w.drop(p)
	}
	if len(t.profiles) > 0 {
		return
	}
	delete(e.targets, t.targetKey)
	e.memory.add(-t.size)
	e.known.remove(t.stream, t)
	for _, lock := range t.locks {
		e.locks.remove(lock, t)
	}
}

// mayLock reports, without the lock, whether a key may be that of a lock.
func (e *Engine) mayLock(key []byte) bool { return e.locks.has(key) || e.asking.has(key) }

// lockTarget finds the target whose lock is called key, for one user and database.
// An ambiguous key belongs to nobody: groups and streams may be named so that two
// of them render to the same key.
func (e *Engine) lockTarget(id Identity, key []byte) *target {
	var found *target
	for _, t := range e.locks.of(key) {
		if t.db != id.DB || t.user != id.User {
			continue
		}
		if found != nil {
			return nil
		}
		found = t
	}
	return found
}

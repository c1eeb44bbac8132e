package reclaim

import (
	"cmp"
	"slices"
	"time"
)

// StreamInfo is one profile, for PROXY STREAMS.
type StreamInfo struct {
	DB                  int
	User, Stream, Group string
	MinIdle             time.Duration
	// State is "cold", "hot" or "unknown"; commands about an unknown one are forwarded.
	State string
	// Age is how old the result is by which commands are answered; it is negative if
	// there is none.
	Age time.Duration
	// FirstID and FirstOwner are of the first reclaimable entry known.
	FirstID, FirstOwner string
	// Consumers have a connection here; Held is how many entries are held for them.
	Consumers, Held int
	// Leading says that this proxy holds a lease under which the stream is probed.
	Leading bool
	// Why says why commands are forwarded, empty if they are not.
	Why string
}

// Streams lists every profile, ordered by database, group, stream, user, min-idle.
func (e *Engine) Streams() []StreamInfo {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []StreamInfo
	for _, t := range e.targets {
		for _, p := range t.profiles {
			list = append(list, e.info(p, now))
		}
	}
	slices.SortFunc(list, func(a, b StreamInfo) int {
		return cmp.Or(a.DB-b.DB, cmp.Compare(a.Group, b.Group), cmp.Compare(a.Stream, b.Stream),
			cmp.Compare(a.User, b.User), cmp.Compare(a.MinIdle, b.MinIdle))
	})
	return list
}

var temperNames = [...]string{unknown: "unknown", cold: "cold", hot: "hot"}

// info describes one profile. The lock is held.
func (e *Engine) info(p *profile, now time.Time) StreamInfo {
	t := p.target
	state := p.temper(now)
	i := StreamInfo{
		DB: t.db, User: t.user.Name, Stream: t.stream, Group: t.group, MinIdle: p.minIdle,
		State: temperNames[state], Age: -1,
	}
	if !p.valid.IsZero() {
		i.Age = now.Sub(p.valid.Add(-validity * e.interval(p.minIdle)))
	}
	if p.hot != nil {
		i.FirstID, i.FirstOwner = p.hot.id, p.hot.owner
	}
	seen := make(map[*consumer]bool)
	warned := false
	for w := range p.sweeps {
		i.Leading = i.Leading || w.leading
		warned = warned || w.warned
		for rs := range w.readers {
			if rs.live() && !seen[rs.consumer] {
				seen[rs.consumer] = true
				i.Consumers++
			}
		}
	}
	for b := range e.held {
		if b.profile == p {
			i.Held += b.ids()
		}
	}
	i.Why = e.why(state, warned)
	return i
}

// why says what keeps commands about a profile from being answered here.
func (e *Engine) why(state temper, warned bool) string {
	switch {
	case e.draining:
		return "draining"
	case e.cfg.Mode == Observe:
		return "observe"
	case state != unknown:
		return ""
	case warned:
		return "rounds fail"
	default:
		return "no recent result"
	}
}

package reclaim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// validity is for how many intervals a result counts: two that the lease of a dead
// holder still stands, one until somebody takes it, one until all have read the new
// result.
const validity = 4

// lifeIntervals is for how many intervals streams are watched that nobody reads.
const lifeIntervals = 10

// sweep is a set of streams that are probed together. Proxies whose clients read
// the same streams have the same sweep, and take turns by its lease.
type sweep struct {
	key      string
	size     int
	db       int
	group    string
	minIdle  time.Duration
	interval time.Duration
	streams  []string // sorted: results name them by number
	lease    string
	profiles [][]*profile // by stream, one per user that has proved it
	readers  map[*readSet]struct{}

	due     time.Time
	place   int // in the agenda, -1 while a round is under way
	tried   time.Time
	running bool
	leading bool
	// written: the lease may bear our name at the server. It does so while we lead, and
	// after a step of it whose outcome we do not know.
	written bool
	warned  bool
	turn    int    // the stream that was proved last
	led     int    // rounds led since the lease was taken
	round   uint64 // of the last result
	at      int64  // when that was, as its report says
	// watched are streams to be probed to their very end, by number: until then in the
	// server's time, for ever if zero.
	watched map[int]time.Time
	hinted  map[string]time.Time
	pages   map[int]*page
}

// sweepKey names a sweep within the process.
func sweepKey(db int, group string, minIdle time.Duration, streams []string) string {
	return joined([]string{strconv.Itoa(db), group, millis(minIdle), setKey(streams)})
}

// interval is the time between rounds for a min-idle: short ones want to be seen
// within half of themselves.
func (e *Engine) interval(minIdle time.Duration) time.Duration {
	return min(e.cfg.Interval, minIdle/2)
}

// freshPerSecond and freshBurst bound how many streams, in sets that no rounds are about yet, are put
// under rounds. Workers of a kind read the same; who reads others each time costs a round for each
// set, and beyond that such commands go to the server.
const (
	freshPerSecond = 1000
	freshBurst     = 10_000
)

// sweepFor finds or makes the sweep for a set of streams. The lock is held.
func (e *Engine) sweepFor(rs *readSet, minIdle time.Duration, now time.Time) *sweep {
	c := rs.consumer
	k := sweepKey(c.db, c.group, minIdle, rs.streams)
	if w := e.sweeps[k]; w != nil {
		return w
	}
	w := &sweep{
		key: k, db: c.db, group: c.group, minIdle: minIdle, interval: e.interval(minIdle),
		readers: make(map[*readSet]struct{}),
		watched: make(map[int]time.Time),
		hinted:  make(map[string]time.Time),
		place:   -1,
	}
	w.streams = slices.Clone(rs.streams)
	slices.Sort(w.streams)
	w.streams = slices.Compact(w.streams)
	w.profiles = make([][]*profile, len(w.streams))
	// The braces keep a lease and its list in one slot of a cluster.
	sum := sha256.Sum256([]byte(k))
	w.lease = e.cfg.KeyPrefix + "lease:{" + hex.EncodeToString(sum[:12]) + "}"
	e.sweeps[k] = w
	w.size = sweepBytes + len(k) + sizeOf(w.streams, sweepingBytes)
	e.memory.add(w.size)
	for _, s := range w.streams {
		if e.covering[s] == nil {
			e.covering[s] = make(map[*sweep]struct{})
		}
		e.covering[s][w] = struct{}{}
	}
	e.agenda.set(w, now.Add(rand.N(w.interval)))
	return w
}

// add puts a profile under the sweep's results.
func (w *sweep) add(i int, p *profile) {
	if !slices.Contains(w.profiles[i], p) {
		w.profiles[i] = append(w.profiles[i], p)
		p.sweeps[w] = struct{}{}
	}
}

// drop takes a profile out.
func (w *sweep) drop(p *profile) {
	if i, ok := w.number(p.target.stream); ok {
		w.profiles[i] = slices.DeleteFunc(w.profiles[i], func(q *profile) bool { return p == q })
	}
	delete(p.sweeps, w)
}

// life is how long streams stay watched that no connection reads.
func (w *sweep) life(cfg *Config) time.Duration {
	return max(lifeIntervals*cfg.Interval, 2*w.minIdle)
}

// liveReader returns a reader that has a connection, nil if there is none.
func (w *sweep) liveReader() *readSet {
	for rs := range w.readers {
		if rs.live() {
			return rs
		}
	}
	return nil
}

// next is the time of the next round: an interval from now, less up to a tenth,
// so that proxies started together do not stay together.
func (w *sweep) next(now time.Time) time.Time {
	return now.Add(w.interval - rand.N(w.interval/10+1))
}

// tickSweeps starts the rounds that are due and ends sweeps that nobody needs. The
// lock is held.
func (e *Engine) tickSweeps(now time.Time) (next time.Time) {
	for {
		w, at := e.agenda.next(now)
		if w == nil {
			return at
		}
		e.pruneReaders(w, now)
		switch {
		case len(w.readers) == 0:
			e.endSweep(w)
		case e.draining || w.liveReader() == nil:
			e.resignLocked(w)
			e.agenda.set(w, w.next(now))
		default:
			w.running, w.tried = true, now
			e.jobLocked(func(ctx context.Context) { e.runRound(ctx, w) })
		}
	}
}

// pruneReaders drops what has not been read for long. The lock is held.
func (e *Engine) pruneReaders(w *sweep, now time.Time) {
	for rs := range w.readers {
		if rs.live() && rs.parked > 0 || now.Sub(rs.used) < w.life(&e.cfg) {
			continue
		}
		delete(w.readers, rs)
		delete(rs.sweeps, w)
		e.forgetConsumer(rs.consumer, now)
	}
}

// endSweep forgets a sweep, which the agenda has no more, and the profiles that no other
// one covers. The lock is held.
func (e *Engine) endSweep(w *sweep) {
	e.setLeading(w, false)
	delete(e.sweeps, w.key)
	e.memory.add(-w.size)
	for _, s := range w.streams {
		if delete(e.covering[s], w); len(e.covering[s]) == 0 {
			delete(e.covering, s)
		}
	}
	e.silencePages(w)
	for _, list := range w.profiles {
		for _, p := range slices.Clone(list) {
			w.drop(p)
			if len(p.sweeps) == 0 {
				e.endProfile(p)
			}
		}
	}
	e.resignLocked(w)
}

// setLeading notes whether we hold a sweep's lease, and reports how many we hold. The lock
// is held.
func (e *Engine) setLeading(w *sweep, leading bool) {
	was := w.leading
	if w.leading = leading; was == leading || e.sweeps[w.key] != w {
		return
	}
	if leading {
		e.leases++
	} else {
		e.leases--
	}
	e.cfg.Events.leases(e.leases)
}

// hurry brings the next round forward for a profile whose result is no longer
// good, because nobody was here to need it. The lock is held.
func (e *Engine) hurry(p *profile, now time.Time) {
	for w := range p.sweeps {
		if !w.running && now.Sub(w.tried) > w.interval/4 && w.due.After(now) {
			e.agenda.set(w, now)
			e.poke()
		}
	}
}

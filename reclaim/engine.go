package reclaim

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// jobTimeout bounds every job: what takes longer is given up and tried again.
const jobTimeout = 10 * time.Second

// Engine is what is known of one upstream server's groups, and what is done about
// it. Make one with New. Its methods are safe for concurrent use.
type Engine struct {
	cfg Config
	up  Upstream

	ctx    context.Context // of the jobs
	cancel context.CancelFunc
	jobs   sync.WaitGroup
	rounds chan struct{} // a place for each that is under way
	fresh  *rate.Limiter // see freshPerSecond
	wake   chan struct{}
	done   chan struct{} // closed when run has ended; nil before Start

	// Looked at without the lock, to let most commands pass at once.
	locks    index[*target]   // by the keys of their locks
	asking   index[*learning] // likewise
	known    index[*target]   // by stream
	holding  atomic.Int64     // batches held
	warm     atomic.Int64     // hots
	claiming atomic.Int64     // claims ahead under way
	granted  atomic.Int64     // tokens given out
	fence    fence
	made     time.Time

	memory       memory       // what is remembered
	holdingBytes atomic.Int64 // heldBytes

	mu        sync.Mutex
	running   int           // jobs
	idle      chan struct{} // closed when there are none, nil if nobody waits for it
	closed    bool
	draining  bool
	targets   map[targetKey]*target
	profiles  int
	consumers map[consumerKey]*consumer
	sweeps    map[string]*sweep
	covering  map[string]map[*sweep]struct{} // sweeps by stream
	agenda    agenda                         // sweeps without a round under way
	learnings map[learnKey]*learning
	denied    map[targetKey]time.Time // not asked about again until then
	aheads    map[*ahead]struct{}
	held      map[*batch]struct{}
	heldN     int
	heldBytes int64
	reserved  int // replies to claims under way
	parked    map[*Parked]struct{}
	tokens    map[tokenKey]grant
	scripts   map[scriptKey]struct{}
	clock     clock
	leases    int
	hots      int
	tidied    time.Time

	// breach is set by tests that plant a fault.
	breach func(fault string) bool
}

// New makes an engine; Start makes it work. The error names every fault of the
// configuration.
func New(cfg Config, up Upstream) (*Engine, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Instance == "" {
		cfg.Instance = rand.Text()
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg:       cfg,
		up:        up,
		made:      time.Now(),
		wake:      make(chan struct{}, 1),
		rounds:    make(chan struct{}, roundsAtOnce),
		fresh:     rate.NewLimiter(freshPerSecond, freshBurst),
		targets:   make(map[targetKey]*target),
		consumers: make(map[consumerKey]*consumer),
		sweeps:    make(map[string]*sweep),
		covering:  make(map[string]map[*sweep]struct{}),
		learnings: make(map[learnKey]*learning),
		denied:    make(map[targetKey]time.Time),
		aheads:    make(map[*ahead]struct{}),
		held:      make(map[*batch]struct{}),
		parked:    make(map[*Parked]struct{}),
		tokens:    make(map[tokenKey]grant),
		scripts:   make(map[scriptKey]struct{}),
	}
	if e.memory.most = cfg.MaxRememberedBytes; e.memory.most == 0 {
		e.memory.most = maxRemembered
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Start begins the rounds. It is called once.
func (e *Engine) Start() {
	e.done = make(chan struct{})
	go e.run()
	if e.cfg.Mode != Off {
		e.job(func(ctx context.Context) {
			_ = e.learnClock(ctx) // a server that is not there yet is asked again when needed
		})
	}
}

// Close ends all jobs and waits for them. Call Drain before it, or what is held
// waits at the server for one more min-idle. No session is served afterwards.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel()
	if e.done != nil {
		<-e.done
	}
	e.jobs.Wait()
}

// Drain gives back everything that is held and the leases, and stops to claim.
// Commands are forwarded from then on. It returns when the server has answered or
// ctx ends.
func (e *Engine) Drain(ctx context.Context) {
	e.mu.Lock()
	e.draining = true
	e.giveBackLocked(e.takeAll())
	for _, w := range e.sweeps {
		e.resignLocked(w)
	}
	e.mu.Unlock()
	select {
	case <-e.quiet():
	case <-ctx.Done():
	}
}

// quiet returns a channel that is closed when no job is running.
func (e *Engine) quiet() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.idle == nil {
		e.idle = make(chan struct{})
	}
	ch := e.idle
	e.settled()
	return ch
}

// settled tells those who wait that no job is running, if so. The lock is held.
func (e *Engine) settled() {
	if e.running == 0 && e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
}

// ServerChanged says that another run of a server answers now. What was known of
// the old one is forgotten; the streams of consumers that are still here are
// learned anew.
func (e *Engine) ServerChanged() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clock.doubtful = true
	clear(e.scripts)
	for k := range e.denied {
		e.allow(k)
	}
	now := time.Now()
	for _, w := range e.sweeps {
		e.setLeading(w, false)
		w.pages, w.led, w.at = nil, 0, 0
		for _, list := range w.profiles {
			for _, p := range list {
				p.valid = time.Time{}
				e.setHot(p, nil)
			}
		}
		if rs := w.liveReader(); rs != nil {
			e.learn(nil, rs, w.minIdle, now)
		}
	}
	for _, c := range e.consumers {
		for stream := range c.cursors {
			c.forgetCursor(stream)
		}
	}
	// What was claimed at the other server may be somebody else's at this one.
	e.giveBackLocked(e.takeAll())
}

// job runs f in the background, unless the engine is closed.
func (e *Engine) job(f func(ctx context.Context)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.jobLocked(f)
}

func (e *Engine) jobLocked(f func(ctx context.Context)) {
	if e.closed {
		return
	}
	e.running++
	e.jobs.Go(func() {
		defer func() {
			e.mu.Lock()
			e.running--
			e.settled()
			e.mu.Unlock()
		}()
		ctx, cancel := context.WithTimeout(e.ctx, jobTimeout)
		defer cancel()
		f(ctx)
	})
}

// run starts what is due and sleeps until something is.
func (e *Engine) run() {
	defer close(e.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		began := time.Now()
		next := e.tick(began)
		if !e.rest(time.Since(began)) {
			return
		}
		timer.Reset(next)
		select {
		case <-timer.C:
		case <-e.wake:
		case <-e.ctx.Done():
			return
		}
	}
}

// maxSleep bounds how long nothing is looked at.
const maxSleep = time.Minute

const (
	// restFor is how much longer than a look at everything the pause after it is: what
	// wakes the engine may be very frequent, and what there is to look at much.
	restFor = 10
	// maxRest bounds the pause; the look may have been long because others had the processor.
	maxRest = 50 * time.Millisecond
)

// rest pauses after a look that took so long. It returns false if the engine ends
// meanwhile.
func (e *Engine) rest(took time.Duration) bool {
	d := min(restFor*took, maxRest)
	if d < minSleep {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-e.ctx.Done():
		return false
	}
}

// minSleep keeps what is due now, but cannot be helped now, from spinning.
const minSleep = time.Millisecond

// tick starts what is due and returns how long there will be nothing to do.
func (e *Engine) tick(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := now.Add(maxSleep)
	soonest := func(t time.Time) {
		if !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	soonest(e.tickHeld(now))
	soonest(e.tickSweeps(now))
	soonest(e.tickParked(now))
	e.tidy(now)
	return max(next.Sub(now), minSleep)
}

// tidy forgets what has lost its meaning with time. The lock is held.
func (e *Engine) tidy(now time.Time) {
	e.expireTokens(now)
	if now.Sub(e.tidied) < maxSleep {
		return
	}
	e.tidied = now
	for k, until := range e.denied {
		if !now.Before(until) {
			e.allow(k)
		}
	}
	for _, c := range e.consumers {
		maps.DeleteFunc(c.alone, func(_ string, until time.Time) bool { return !now.Before(until) })
		maps.DeleteFunc(c.tried, func(p *profile, _ uint64) bool { return p.target.profiles[p.minIdle] != p })
	}
}

// poke makes run look at once.
func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// faulty is true where a test wants a fault to be there.
func (e *Engine) faulty(fault string) bool { return e.breach != nil && e.breach(fault) }

package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
	"streamproxy/reclaim"
)

// maxDials bounds the dials under way at a time in the whole process, and manyDials while the server
// takes them quickly.
const (
	maxDials  = 16
	manyDials = 48
)

// Proxy serves clients of one upstream. Make one with New, give it listeners with
// Serve, end it with Shutdown or Close.
type Proxy struct {
	cfg     Config
	log     *slog.Logger
	started time.Time
	dialer  *upstream.Dialer
	control *upstream.Control

	sessions   registry
	partings   *partings
	identities *identities
	streams    *reclaim.Engine // nil: reclaim is off
	conns      sync.Map        // *batcher.Conn: struct{}, every upstream connection
	connected  atomic.Int64    // how many
	lanes      atomic.Int64    // of those, with lanes that have just ended
	table      atomic.Pointer[Table]
	denials    *denials            // nil: every command may be sent
	warm       atomic.Pointer[hub] // whose spares are kept ready
	room       room                // for more connections, see claims.go

	locked       atomic.Bool // see admission.go, as are these two
	lockedMu     sync.Mutex
	lockedAt     time.Time // when what locked says was found
	maxBulk      atomic.Int64
	knowsSetInfo atomic.Bool
	fragile      atomic.Bool  // see recall.go
	cannotList   sync.Once    // the warning of it, see witness.go
	handshake    atomic.Int64 // nanoseconds of the fastest handshake lately
	buffered     atomic.Int64 // bytes that slow clients have not taken, or not ended
	inHand       atomic.Int64 // bytes of the chunks that readers hold
	names        keepsakes    // of clients
	logins       keepsakes    // of identities
	ceded        atomic.Int64 // of buffered, what readers of closed sessions are about to drop
	dropping     atomic.Int64 // and of that, what they have read
	ceiling      ceiling
	lobby        lobby      // of readers with a part of a command
	porch        porch      // of those that would read on under a command that blocks
	shedding     sync.Mutex // held by whoever ends clients over the memory limit
	commands     atomic.Int64
	health       health
	insecure     sampler // failed TLS handshakes of clients
	unaccepted   sampler // clients that could not be accepted
	pages        pages
	unreadable   sampler // failures to read the clients' password
	limits       [numLimits]sampler

	mu        sync.Mutex
	hubs      map[upstream.Key]*hub
	unused    unused
	asked     askers
	controls  map[upstream.Key]*batcher.Lane // by user and protocol version
	listeners []closer
	deaf      bool // listeners are closed, also those to come

	txSlots  chan struct{} // one in it for each transaction on a connection of its own
	txPeak   peak          // of them
	draining atomic.Bool
	ctx      context.Context // ends when the proxy closes
	cancel   context.CancelFunc
	closing  <-chan struct{} // ctx.Done()
	closed   sync.Once
	wg       sync.WaitGroup // every goroutine but the clients' readers
	readers  sync.WaitGroup
}

type closer interface{ Close() error }

// New returns a proxy that begins to reach its upstream at once. That the upstream
// is down is no error; a configuration that makes no sense is.
func New(cfg Config) (*Proxy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	table, err := cfg.table(upstream.Facts{})
	if err != nil {
		return nil, err
	}
	denials, err := newDenials(cfg.Deny)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		cfg: cfg, log: cfg.Logger, started: time.Now(), denials: denials,
		hubs: map[upstream.Key]*hub{}, controls: map[upstream.Key]*batcher.Lane{}, identities: newIdentities(),
		txSlots: make(chan struct{}, cfg.PrivateMax),
	}
	p.countLanes()
	p.names.init(shortName, cfg.MemoryLimit)
	p.logins.init(shortLogin, cfg.MemoryLimit)
	p.identities.kept = &p.logins
	p.ceiling.init(cfg.Ceiling, cfg.MemoryLimit)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.closing = p.ctx.Done()
	host, _ := os.Hostname() // an unnamed host is named so
	p.dialer = &upstream.Dialer{
		Target:      cfg.Upstream,
		Timeout:     cfg.DialTimeout,
		UserTimeout: cfg.UpstreamTimeout,
		PasswordOf:  p.identities.passwordOf,
		Stranger:    p.stranger,
		Gate:        upstream.NewGate(maxDials, manyDials, upstream.DefaultBackoff()),
		Name:        connNames(host),
	}
	if p.partings, err = newPartings(p.sessions.find); err != nil {
		return nil, err
	}
	if p.control, err = upstream.NewControl(p.dialer); err != nil {
		p.partings.close()
		return nil, err
	}
	p.table.Store(table)
	p.maxBulk.Store(resp.DefaultLimits().MaxBulk)
	p.fragile.Store(true)
	p.health.check = make(chan struct{}, 1)
	p.warm.Store(p.hubOf(p.defaultKey()))
	p.pages = p.newPages()
	if cfg.Reclaim.Mode != reclaim.Off {
		if p.streams, err = reclaim.New(cfg.Reclaim, calls{p}); err != nil {
			p.partings.close()
			p.control.Close()
			return nil, err
		}
		p.streams.Start()
	}
	p.wg.Go(p.watchUpstream)
	p.wg.Go(p.sweep)
	p.wg.Go(p.partings.run)
	if p.ceiling.applies() {
		p.measure()
		p.wg.Go(p.keepBelow)
	}
	return p, nil
}

// validate reports every fault of a configuration.
func (c *Config) validate() error {
	var faults []error
	positive := func(name string, v int64) {
		if v <= 0 {
			faults = append(faults, fmt.Errorf("proxy: %s is %d, want at least 1", name, v))
		}
	}
	positive("UpstreamConns", int64(c.UpstreamConns))
	positive("MaxLanes", int64(c.MaxLanes))
	positive("UpstreamTimeout", int64(c.UpstreamTimeout))
	positive("UpstreamWait", int64(c.UpstreamWait))
	positive("DialTimeout", int64(c.DialTimeout))
	positive("PrivateMax", int64(c.PrivateMax))
	positive("MaxClients", int64(c.MaxClients))
	positive("ClientBufferLimit", c.ClientBufferLimit)
	positive("ClientStallTimeout", int64(c.ClientStallTimeout))
	positive("MaxArgs", int64(c.MaxArgs))
	if c.PrivateMinIdle < 0 || c.MemoryLimit < 0 || c.ClientIdleTimeout < 0 || c.Ceiling < 0 {
		faults = append(faults, errors.New("proxy: a limit is negative"))
	}
	if c.Ceiling > 0 && c.Need == nil {
		faults = append(faults, errors.New("proxy: nobody measures what has a ceiling"))
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return errors.Join(append(faults, c.Flush.Validate())...)
}

// table is the table of commands, given the server's own list.
func (c *Config) table(f upstream.Facts) (*Table, error) {
	t, err := DefaultTable().WithServer(f.Commands).WithShared(c.SharedCommands)
	if err != nil {
		return nil, err
	}
	if loose(f.Server, f.Version) {
		t = t.WithLooseScripts(c.SharedCommands)
	}
	return t.WithDenied(c.Deny), nil
}

// defaultKey is the key with which a session begins.
func (p *Proxy) defaultKey() upstream.Key {
	return upstream.Key{DB: p.cfg.Upstream.DB, Proto: 2}
}

// hubOf returns the hub of a key, making it if need be. The caller leaves it with
// leaveHub.
func (p *Proxy) hubOf(key upstream.Key) *hub {
	p.mu.Lock()
	h := p.hubs[key]
	if h == nil {
		h = newHub(p, key)
		p.hubs[key] = h
	}
	p.countUsers(h, 1)
	p.mu.Unlock()
	if p.stopping() {
		h.close() // Close may have missed it
	}
	return h
}

// enterHub is hubOf for a hub that is known.
func (p *Proxy) enterHub(h *hub) {
	p.mu.Lock()
	p.countUsers(h, 1)
	p.mu.Unlock()
}

// countUsers books users of a hub, which is one of the unused when it has none. The lock is held.
func (p *Proxy) countUsers(h *hub, n int) {
	h.users += n
	p.unused.note(h, p.hubs[h.key] == h)
}

// leaveHub ends what hubOf began. A hub that nobody uses and that has no connection
// is forgotten, or every database somebody asks for in vain would be dialled for ever.
func (p *Proxy) leaveHub(h *hub) {
	p.mu.Lock()
	p.countUsers(h, -1)
	left := h.users <= 0
	if left && h.key.User.Proven() {
		p.cool(h) // nobody's password is left to dial with
	}
	p.mu.Unlock()
	if left {
		p.dropVacant(h)
		p.leftHub()
	}
}

// cool keeps the default key's spares ready instead of those of h. The lock is held.
func (p *Proxy) cool(h *hub) { p.warm.CompareAndSwap(h, p.hubs[p.defaultKey()]) }

// dropHub forgets a hub that nobody uses. The lock is held.
func (p *Proxy) dropHub(h *hub) {
	delete(p.hubs, h.key)
	p.unused.note(h, false)
	p.cool(h)
	h.dropped.Store(true)
}

// dropVacant forgets a hub that nobody uses if nothing is left in it.
func (p *Proxy) dropVacant(h *hub) {
	p.mu.Lock()
	vacant := h.users <= 0 && h.key != p.defaultKey() && h.vacant() && p.hubs[h.key] == h
	if vacant {
		p.dropHub(h)
	}
	p.mu.Unlock()
	if vacant {
		h.close()
	}
}

func (p *Proxy) allHubs() []*hub {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*hub, 0, len(p.hubs))
	for _, h := range p.hubs {
		list = append(list, h)
	}
	return list
}

// dial opens one upstream connection and registers it.
func (p *Proxy) dial(ctx context.Context, rank upstream.Rank, key upstream.Key, opts batcher.Options) (*batcher.Conn, error) {
	nc, greeting, err := p.dialer.DialFor(ctx, rank, key, opts.Kind)
	p.noteAdmission(key, greeting, err)
	p.noteRoom(err)
	if err != nil {
		p.failed(err)
		var he *upstream.HandshakeError
		if errors.As(err, &he) && !upstream.Unavailable(err) {
			p.identities.doubt(key.User)
		}
		return nil, err
	}
	opts.ID, opts.Name = greeting.ID, greeting.Name
	opts.Opaque = p.cfg.Upstream.TLS != nil
	opts.Events = &p.cfg.BatchEvents
	opts.RoundTrip = greeting.Took / 2 // a connect and a greeting
	p.handshake.Store(int64(opts.RoundTrip))
	c := batcher.NewConn(nc, opts)
	p.tookOn(upstreamConn)
	p.conns.Store(c, struct{}{})
	p.connected.Add(1)
	if c.Dead() { // it ended before it was listed
		p.forgetConn(c)
	}
	return c, nil
}

// forgetConn takes a connection that has ended off the list.
func (p *Proxy) forgetConn(c *batcher.Conn) {
	if _, listed := p.conns.LoadAndDelete(c); listed {
		p.connected.Add(-1)
	}
}

// failed reports a dial that did not succeed.
func (p *Proxy) failed(err error) {
	f := p.cfg.BatchEvents.Failed
	if f == nil {
		return
	}
	var he *upstream.HandshakeError
	if errors.As(err, &he) || errors.Is(err, upstream.ErrTLS) {
		f("handshake")
		return
	}
	f("dial")
}

// handshakeTime is an estimate of the round trip for a connection that is reused.
func (p *Proxy) handshakeTime() time.Duration { return time.Duration(p.handshake.Load()) }

// controlLane is the connection for urgent commands of a user and protocol version.
func (p *Proxy) controlLane(key upstream.Key) *batcher.Lane {
	key.DB = 0 // no urgent command has keys
	p.mu.Lock()
	l := p.controls[key]
	if l == nil {
		l = p.newControl(key)
		p.controls[key] = l
	}
	p.mu.Unlock()
	if p.stopping() {
		l.Close() // Close may have missed it
	}
	return l
}

// controlConn waits for the connection of controlLane.
func (p *Proxy) controlConn(key upstream.Key) (*batcher.Conn, error) {
	ctx, cancel := p.within(p.cfg.UpstreamWait)
	defer cancel()
	return p.controlLane(key).Await(ctx)
}

func (p *Proxy) newControl(key upstream.Key) *batcher.Lane {
	var l *batcher.Lane
	opts := batcher.Options{
		Kind:    "control",
		Timeout: p.cfg.UpstreamTimeout,
		Closed: func(c *batcher.Conn) {
			p.forgetConn(c)
			l.Lost(c)
		},
		Emptied: (*batcher.Conn).Close, // see witness
	}
	l = batcher.NewLane(batcher.LaneOptions{
		Dial: func(ctx context.Context, _ *batcher.Lane) (*batcher.Conn, error) {
			return p.dial(ctx, upstream.ForMany, key, opts)
		},
		Pause:  p.dialer.Gate.Pause,
		Final:  func(err error) bool { return denies(key, err) || errors.Is(err, errNobody) },
		Events: &p.cfg.BatchEvents,
	})
	return l
}

// dropControls closes the connections for urgent commands of users that nobody is any more.
func (p *Proxy) dropControls() {
	var vacant []*batcher.Lane
	p.mu.Lock()
	for key, l := range p.controls {
		// Whoever asks for one has entered before, and sees either this one or none.
		if key.User.Proven() && !p.identities.has(key.User) {
			delete(p.controls, key)
			vacant = append(vacant, l)
		}
	}
	p.mu.Unlock()
	for _, l := range vacant {
		p.wg.Go(l.Close)
	}
}

// lanesFull reports whether there are as many lanes as are allowed, all of them of who is there. It
// looks at every connection: it is asked only by a session that is about to get a lane dialled.
func (p *Proxy) lanesFull() bool {
	for p.lanesTaken() {
		if !p.discardLane() {
			return true
		}
	}
	return false
}

// lanesTaken reports whether there are as many lanes as are allowed. One that has been retired
// with a WAIT is one client's.
func (p *Proxy) lanesTaken() bool {
	if p.lanes.Load() < int64(p.cfg.MaxLanes) {
		return false
	}
	lanes := 0
	p.conns.Range(func(k, _ any) bool {
		if c := k.(*batcher.Conn); c.Kind() == "lane" && !c.Retired() {
			lanes++
		}
		return lanes < p.cfg.MaxLanes
	})
	return lanes >= p.cfg.MaxLanes
}

// countLanes has lanes counted from now on.
func (p *Proxy) countLanes() {
	count := func(f func(string), n int64) func(string) {
		return func(kind string) {
			if kind == "lane" {
				p.lanes.Add(n)
			}
			if f != nil {
				f(kind)
			}
		}
	}
	events := &p.cfg.BatchEvents
	events.Opened, events.Closed = count(events.Opened, 1), count(events.Closed, -1)
}

// Stats is a picture of the proxy at one moment.
type Stats struct {
	// Clients is the number of sessions, InFlight their unanswered commands.
	Clients, InFlight int
	// Lanes, PrivateIdle, PrivateBusy and Control count upstream connections by role;
	// the connection of the control plane is one more.
	Lanes, PrivateIdle, PrivateBusy, Control int
	// Commands is how many clients have sent since the start.
	Commands int64
	// BufferedBytes is what clients have not taken, or not ended, or what of theirs waits
	// for an upstream, and what is remembered of them.
	BufferedBytes int64
	// UpstreamUp is the last health check's word; UpstreamNotReady the server's own
	// when it asked for patience.
	UpstreamUp       bool
	UpstreamNotReady string
	Draining         bool
}

// idleClient is about what an idle session costs, in bytes: most of it is its stack.
const idleClient = 10 << 10

// Held estimates how many bytes are in use for clients. Unlike Stats it costs nothing.
func (p *Proxy) Held() int64 { return p.inBuffers() + int64(p.sessions.len())*idleClient }

// Stats counts. It is meant to be asked a few times a second at most.
func (p *Proxy) Stats() Stats {
	st := Stats{
		Clients:       p.sessions.len(),
		Commands:      p.commands.Load(),
		BufferedBytes: p.inBuffers(),
		UpstreamUp:    p.health.up.Load(),
		Draining:      p.draining.Load(),
	}
	if text := p.health.notReady.Load(); text != nil {
		st.UpstreamNotReady = *text
	}
	for _, h := range p.allHubs() {
		st.PrivateIdle += h.spares.len()
	}
	p.conns.Range(func(k, _ any) bool {
		c := k.(*batcher.Conn)
		st.InFlight += c.InFlight()
		switch c.Kind() {
		case "lane":
			st.Lanes++
		case "control":
			st.Control++
		default:
			st.PrivateBusy++
		}
		return true
	})
	st.PrivateBusy = max(st.PrivateBusy-st.PrivateIdle, 0)
	return st
}

//go:build faults

package faults

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
	"streamproxy/internal/resp"
)

// garbage is what a damaged reply is made of; nothing else holds it.
const garbage = '\xfe'

// plan is what a run consists of.
type plan struct {
	seed    uint64
	durable bool // the server loses nothing when it is killed: AOF, fsync at every write
	secure  bool // TLS between proxy and server
	apart   bool // the proxy has a network of its own, if that is possible here
	race    bool // the proxy is built with the race detector
	mutant  string
	clients int
	think   time.Duration // how long clients pause on average between two pipelines
	time    time.Duration // of faults
	gap     time.Duration // between two faults, on average
	only    string        // the names of the faults to inject, all if empty
	hang    time.Duration // after which a client that still waits counts as hung
	settle  time.Duration // within which workers must have worked off what is in the streams
	until   func() bool   // ends the faults early
}

// lab is a running set-up.
type lab struct {
	plan
	t      testing.TB
	rnd    *rand.Rand // the schedule's
	disk   string     // where the server keeps its files
	small  bool       // the disk can be filled
	server *redistest.Server
	space  *network     // nil: the proxy has none of its own
	link   *netlab.Link // between proxy and server
	front  *netlab.Link // between some clients and the proxy
	proxy  *process
	tally  *tally
	faults map[string]*faultCount
	soak   *soakResult // nil but for a soak

	lately    atomic.Pointer[string] // the fault under way, or the last one
	losses    atomic.Uint64          // how often the server has lost its data
	mayRefuse atomic.Bool            // the proxy may refuse or close connections
	epoch     atomic.Int64           // counts the times that it might
	settling  atomic.Bool            // nothing new is added to streams
	common    map[string]any
	stood     atomic.Int64                  // for how long this process itself got no time, in nanoseconds
	rest      atomic.Pointer[chan struct{}] // closed when a rest ends; nil: nobody rests
	stop      chan struct{}
	wg        sync.WaitGroup

	mu       sync.Mutex
	diaries  []*diary
	pairs    [][2]*diary // that must be equal
	queues   []*queue
	accounts []*account
	streams  []*stream
}

// startLab starts a server, the links and the proxy; its clients come with populate.
func startLab(t testing.TB, p plan) *lab {
	t.Helper()
	p.hang, p.settle = or(p.hang, hangTime), or(p.settle, patience)
	l := &lab{plan: p, t: t, rnd: rand.New(rand.NewPCG(p.seed, 0)), tally: newTally(),
		faults: make(map[string]*faultCount), common: make(map[string]any), stop: make(chan struct{})}
	t.Cleanup(l.quit)
	args := []string{"--busy-reply-threshold", "100", "--enable-debug-command", "yes"}
	if p.durable {
		l.disk, l.small = smallDisk(t)
		args = append(args, "--dir", l.disk, "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-min-size", "256mb")
	}
	options := []redistest.Option{redistest.WithArgs(args...)}
	own := []string{"--upstream-timeout", "2s", "--dial-timeout", "1s", "--reclaim-interval", "1s",
		"--drain-idle", "300ms", "--drain-timeout", "2s", "--log-level", "warn"}
	if p.secure {
		a := redistest.NewAuthority(t)
		options = append(options, redistest.WithTLS(t, a))
		ca, cert, key := redistest.ClientFiles(t, a)
		own = append(own, "--upstream-ca-file", ca, "--upstream-cert-file", cert, "--upstream-key-file", key)
	}
	if p.apart {
		l.space = newNetwork(t)
	}
	l.server = redistest.Start(t, options...)
	upstream := l.startLinks(t)
	var flags []string
	if p.mutant != "" {
		flags = append(flags, "-tags", p.mutant)
	}
	if p.race {
		flags = append(flags, "-race")
	}
	l.proxy = startProcess(t, binary(t, binaries, flags...), upstream, l.space, own)
	l.front = startLink(t, netlab.Options{Upstream: l.proxy.addr})
	l.wg.Go(l.watchTime)
	return l
}

// watchTime notes when this process itself was not given any time: whoever waits meanwhile has not
// hung.
func (l *lab) watchTime() {
	const beat, late = 100 * time.Millisecond, time.Second
	for last := time.Now(); !l.stopping(); last = time.Now() {
		l.pause(beat)
		if gap := time.Since(last); gap > late {
			l.stood.Add(int64(gap))
		}
	}
}

// startLinks puts the link before the server and returns the URL by which the proxy reaches it.
func (l *lab) startLinks(t testing.TB) string {
	t.Helper()
	o := netlab.Options{Upstream: l.server.Addr()}
	scheme, host := "redis://", ""
	if l.secure {
		o.Upstream, scheme = l.server.TLSAddr(), "rediss://"
	}
	if l.space != nil {
		o.Listen, host = net.JoinHostPort(l.space.lab, "0"), hostName
	}
	l.link = startLink(t, o)
	addr := l.link.Addr()
	if _, port, err := net.SplitHostPort(addr); err == nil && host != "" {
		addr = net.JoinHostPort(host, port)
	}
	return scheme + addr
}

func startLink(t testing.TB, o netlab.Options) *netlab.Link {
	t.Helper()
	link, err := netlab.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	return link
}

// populate starts the clients, in equal parts of every kind.
func (l *lab) populate() {
	var streams []*stream
	if l.durable {
		for i := range 4 {
			streams = append(streams, l.newStream(fmt.Sprintf("stream:%d", i)))
		}
	}
	for id := range l.clients {
		l.wg.Go(l.client(id, streams))
	}
}

// client is the life of client number id.
func (l *lab) client(id int, streams []*stream) func() {
	team := id / 100 // that shares keys
	switch id % 20 {
	case 0, 1, 2:
		return func() { l.writer(id, 60) }
	case 3: // more than fits into a buffer
		return func() { l.writer(id, 2000) }
	case 4, 5, 6:
		return func() { l.writer(id, 1) }
	case 7, 8:
		return func() { l.whole(id) }
	case 9, 10:
		a := l.shared(fmt.Sprint("account", team), func() any { return l.newAccount(fmt.Sprint(team)) }).(*account)
		return func() { l.watcher(id, a) }
	case 11, 12:
		q := l.shared(fmt.Sprint("queue", team), func() any { return l.newQueue(fmt.Sprint("q:", team)) }).(*queue)
		if id%20 == 11 {
			return func() { l.pusher(id, q) }
		}
		return func() { l.popper(id, q) }
	case 13, 14:
		pair := id - id%20
		ch := l.shared(fmt.Sprint("channel", pair), func() any { return newChannel(fmt.Sprint("channel:", pair)) }).(*channel)
		if id%20 == 13 {
			return func() { l.publisher(id, ch) }
		}
		return func() { l.subscriber(id/20, ch) }
	case 15:
		return func() { l.giant(id) }
	case 16, 17:
		return func() { l.visitor(id) }
	case 18:
		if len(streams) > 0 {
			return func() { l.worker(id/20, streams) }
		}
	case 19:
		if len(streams) > 0 {
			return func() { l.producer(id, streams) }
		}
	}
	return func() { l.writer(id, 10) }
}

// shared returns what the clients of a team have in common. Only populate calls it.
func (l *lab) shared(name string, make func() any) any {
	if l.common[name] == nil {
		l.common[name] = make()
	}
	return l.common[name]
}

// twins notes that two lists must be equal: what fills them is one transaction.
func (l *lab) twins(a, b *diary) {
	l.mu.Lock()
	l.pairs = append(l.pairs, [2]*diary{a, b})
	l.mu.Unlock()
}

// excuse lets the proxy refuse and close connections until the returned func is called.
func (l *lab) excuse() (end func()) {
	l.mayRefuse.Store(true)
	l.epoch.Add(1)
	return func() {
		l.epoch.Add(1)
		l.mayRefuse.Store(false)
	}
}

func (l *lab) stopping() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// repose lets every client come to rest with its connection open, until the returned func is called.
func (l *lab) repose() (wake func()) {
	over := make(chan struct{})
	l.rest.Store(&over)
	return func() {
		l.rest.Store(nil)
		close(over)
	}
}

// halt is where clients rest.
func (l *lab) halt() {
	if over := l.rest.Load(); over != nil {
		select {
		case <-*over:
		case <-l.stop:
		}
	}
}

// pause waits, or until the run is over.
func (l *lab) pause(d time.Duration) {
	select {
	case <-l.stop:
	case <-time.After(d):
	}
}

// quit ends the clients and waits for them.
func (l *lab) quit() {
	if !l.stopping() {
		close(l.stop)
	}
	l.wg.Wait()
}

// finish lets the workers work off what is in the streams, ends all clients, and verifies every
// ledger against the server.
func (l *lab) finish() {
	l.t.Helper()
	l.settling.Store(true)
	deadline, stood := time.Now().Add(l.settle), l.stood.Load()
	for _, st := range l.streams {
		for !l.workedOff(st) {
			// Where nothing was given any time, no reply comes before the proxy's deadlines, and every
			// claim ends as one of unknown outcome.
			if late := time.Duration(l.stood.Load() - stood); time.Now().After(deadline.Add(late)) {
				l.tally.violate("P6", "%s is not worked off after %v and %v without time: %q\n%s", st.key, l.settle, late,
					l.server.Do("XPENDING", st.key, group, "-", "+", "5"), l.proxyStreams())
				break
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	l.quit()
	if !l.proxy.alive() {
		l.tally.violate("P8", "the proxy ended: %v\n%s", l.proxy.err, l.proxy.log.String())
	}
	losses := l.losses.Load()
	c := l.server.Client()
	c.Timeout = patience
	for _, d := range l.diaries {
		d.verify(l.list(c, d.key), l.tally, losses)
	}
	for _, p := range l.pairs {
		if a, b := l.list(c, p[0].key), l.list(c, p[1].key); strings.Join(a, " ") != strings.Join(b, " ") {
			l.tally.violate("P3", "a transaction was executed in part: %s has %d elements, %s %d", p[0].key, len(a), p[1].key, len(b))
		}
	}
	for _, q := range l.queues {
		q.verify(l.list(c, q.key), l.tally, losses)
	}
	for _, a := range l.accounts {
		a.verify(l.list(c, a.history), l.tally, losses)
	}
	for _, st := range l.streams {
		reply, err := c.Do("XRANGE", st.key, "-", "+")
		v, _, parseErr := resp.Parse([]byte(reply))
		if err != nil || parseErr != nil {
			l.t.Fatalf("XRANGE %s: %v, %v", st.key, err, parseErr)
		}
		st.verify(v, l.tally)
	}
}

// proxyStreams is what the proxy says of the streams that it knows.
func (l *lab) proxyStreams() string {
	c, err := redistest.Dial(l.proxy.socket)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	reply, err := c.Do("PROXY", "STREAMS")
	if err != nil {
		return err.Error()
	}
	return reply
}

// list reads a list at the server.
func (l *lab) list(c *redistest.Client, key string) (elements []string) {
	l.t.Helper()
	reply, err := c.Do("LRANGE", key, "0", "-1")
	v, _, parseErr := resp.Parse([]byte(reply))
	if err != nil || parseErr != nil || v.Kind != '*' {
		l.t.Fatalf("LRANGE %s: %v, %v, %.80q", key, err, parseErr, reply)
	}
	for _, e := range v.Elems {
		elements = append(elements, string(e.Text))
	}
	return elements
}

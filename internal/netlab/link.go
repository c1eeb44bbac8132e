package netlab

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options shape a link.
type Options struct {
	// Upstream is where connections lead: host:port, or a socket's path if it
	// begins with a slash. It is resolved for each connection.
	Upstream string
	// Delay is the one-way delay, the same in both directions; a round trip takes
	// twice that.
	Delay time.Duration
	// Listen is the link's own address; empty is a free port on loopback, a path
	// is a unix socket.
	Listen string
}

// Dir is a direction through the link.
type Dir int

// The directions, named after where the bytes go.
const (
	ToUpstream Dir = iota
	ToClient
	numDirs
)

// String names the direction.
func (d Dir) String() string { return [numDirs]string{"to upstream", "to client"}[d] }

// Stats counts since the start of the link.
type Stats struct {
	// Accepted counts connections taken, Open those still there, Failed those for
	// which upstream could not be reached.
	Accepted, Open, Failed int64
	// Arrived counts bytes read from a sender and Delivered bytes handed on, by
	// direction. Faults make them differ.
	Arrived, Delivered [numDirs]int64
}

// Link forwards connections. All methods are safe for concurrent use.
type Link struct {
	upstream atomic.Pointer[string]
	addr     net.Addr
	delay    atomic.Int64
	faults   faults
	ctx      context.Context // ends dials when the link closes
	cancel   context.CancelFunc

	accepted, failed   atomic.Int64
	arrived, delivered [numDirs]atomic.Int64

	mu       sync.Mutex
	listener net.Listener // nil while refusing
	closed   bool
	pairs    map[*pair]struct{}
	wg       sync.WaitGroup
}

// Start opens the link.
func Start(o Options) (*Link, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	l := &Link{pairs: make(map[*pair]struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.delay.Store(int64(o.Delay))
	l.SetUpstream(o.Upstream)
	l.faults.init()
	if err := l.listen(o.Listen); err != nil {
		l.cancel()
		return nil, err
	}
	l.addr = l.listener.Addr()
	return l, nil
}

// listen opens the front and starts to accept. The caller holds mu, or is Start.
func (l *Link) listen(addr string) error {
	front, err := net.Listen(network(addr), addr)
	if err != nil {
		return fmt.Errorf("netlab: %w", err)
	}
	l.listener = front
	l.wg.Go(func() { l.accept(front) })
	return nil
}

// network is "unix" for a path, else "tcp".
func network(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return "unix"
	}
	return "tcp"
}

// Addr is where clients connect: host:port, or the socket's path.
func (l *Link) Addr() string { return l.addr.String() }

// SetDelay changes the one-way delay for what arrives from now on. What is
// under way is not overtaken.
func (l *Link) SetDelay(d time.Duration) { l.delay.Store(int64(d)) }

// SetUpstream changes where connections lead from now on, in the form of Options.Upstream.
// Those that are open stay where they are.
func (l *Link) SetUpstream(addr string) { l.upstream.Store(&addr) }

// Stats returns the counters.
func (l *Link) Stats() Stats {
	s := Stats{Accepted: l.accepted.Load(), Failed: l.failed.Load()}
	for d := range numDirs {
		s.Arrived[d], s.Delivered[d] = l.arrived[d].Load(), l.delivered[d].Load()
	}
	l.mu.Lock()
	s.Open = int64(len(l.pairs))
	l.mu.Unlock()
	return s
}

// Close ends the link and all its connections, and waits for its goroutines.
func (l *Link) Close() error {
	l.mu.Lock()
	l.closed = true
	front := l.listener
	l.listener = nil
	l.mu.Unlock()
	l.cancel()
	var err error
	if front != nil {
		err = front.Close()
	}
	l.Cut()
	l.wg.Wait()
	return err
}

// accept hands each connection to goroutines of its own until front is closed.
func (l *Link) accept(front net.Listener) {
	for {
		client, err := front.Accept()
		if err != nil {
			return
		}
		l.accepted.Add(1)
		l.wg.Go(func() { l.carry(client) })
	}
}

// carry connects client to upstream and stays until the connection has ended.
func (l *Link) carry(client net.Conn) {
	upstream := *l.upstream.Load()
	server, err := new(net.Dialer).DialContext(l.ctx, network(upstream), upstream)
	if err != nil {
		l.failed.Add(1)
		reset(client)
		return
	}
	p := newPair(l, client, server)
	if !l.add(p) {
		p.end(false)
		return
	}
	p.run()
	l.mu.Lock()
	delete(l.pairs, p)
	l.mu.Unlock()
}

// add registers p unless the link is closed.
func (l *Link) add(p *pair) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.pairs[p] = struct{}{}
	return true
}

// each calls f for every connection, outside the lock.
func (l *Link) each(f func(*pair)) {
	l.mu.Lock()
	pairs := make([]*pair, 0, len(l.pairs))
	for p := range l.pairs {
		pairs = append(pairs, p)
	}
	l.mu.Unlock()
	for _, p := range pairs {
		f(p)
	}
}

// relisten opens the front again at the address it had.
func (l *Link) relisten() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.listener != nil {
		return nil
	}
	if l.addr.Network() == "unix" {
		_ = os.Remove(l.addr.String())
	}
	return l.listen(l.addr.String())
}

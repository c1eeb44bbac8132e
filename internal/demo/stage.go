package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"streamproxy/internal/upstream"
	"streamproxy/proxy"
)

// stage is what a load runs on: one server, a link to it for each side, so that each
// side's connections can be told apart, and the proxy at the near end of one link.
type stage struct {
	server   string // for the reader
	embedded *miniredis.Miniredis
	proxy    *proxy.Proxy
	serving  sync.WaitGroup // the proxy's listener
	direct   *side
	proxied  *side
}

// openStage starts everything. On an error nothing of it is left.
func openStage(ctx context.Context, o Options) (*stage, error) {
	st := &stage{server: o.Proxy.Upstream.String()}
	target := o.Proxy.Upstream
	var err error
	if o.External {
		// Through a link nobody could tell why a server does not answer.
		if err := greet(ctx, target, o.Proxy.DialTimeout); err != nil {
			return nil, fmt.Errorf("demo: %s: %w", target, err)
		}
	} else {
		if st.embedded, err = miniredis.Run(); err != nil {
			return nil, fmt.Errorf("demo: embedded server: %w", err)
		}
		st.server = "an embedded server"
		target = upstream.Target{Network: "tcp", Addr: st.embedded.Addr()}
	}
	if err = st.openSides(o, target); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// greet makes sure that a server is there and serves.
func greet(ctx context.Context, target upstream.Target, timeout time.Duration) error {
	d := &upstream.Dialer{Target: target, Timeout: timeout}
	c, greeting, err := d.Dial(ctx, upstream.Key{DB: target.DB, Proto: 2}, "demo")
	if err != nil {
		return err
	}
	_ = c.Close()
	if greeting.NotReady != "" {
		return errors.New(greeting.NotReady)
	}
	return nil
}

// openSides starts the links and the proxy.
func (st *stage) openSides(o Options, target upstream.Target) error {
	var err error
	if st.direct, err = newSide("direct", target); err != nil {
		return err
	}
	st.direct.dial = dialDirect(st.direct, o.Proxy.DialTimeout)
	if st.proxied, err = newSide("proxied", target); err != nil {
		return err
	}
	front, err := proxy.Listen("127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	cfg := o.Proxy
	cfg.Upstream = st.proxied.target
	cfg.DrainMin, cfg.DrainIdle = 0, 0 // when the proxy ends, its clients have left
	countWrites(&cfg, &st.proxied.meter)
	if st.proxy, err = proxy.New(cfg); err != nil {
		_ = front.Close()
		return err
	}
	// The listener ends with the proxy, and only then.
	st.serving.Go(func() { _ = st.proxy.Serve(front) })
	st.proxied.dial = func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", front.Addr().String())
	}
	return nil
}

// countWrites has m count what the proxy writes upstream: a flush is one write as long
// as the socket takes it whole, which batches of a demo are small enough for.
func countWrites(cfg *proxy.Config, m *meter) {
	before := cfg.BatchEvents.Flushed
	cfg.BatchEvents.Flushed = func(r flushReason, commands, bytes int, waited time.Duration) {
		m.wrote()
		if before != nil {
			before(r, commands, bytes, waited)
		}
	}
}

// dialDirect connects a client as the proxy connects itself: with the same user,
// password and database, so that both sides do the same on the server.
func dialDirect(s *side, timeout time.Duration) func(context.Context) (net.Conn, error) {
	d := &upstream.Dialer{Target: s.target, Timeout: timeout}
	return func(ctx context.Context) (net.Conn, error) {
		c, _, err := d.Dial(ctx, upstream.Key{DB: s.target.DB, Proto: 2}, s.name)
		if err != nil {
			return nil, err
		}
		return &countedConn{Conn: c, meter: &s.meter}, nil
	}
}

// partingTime bounds how long the proxy may take leave of the server.
const partingTime = 5 * time.Second

// close ends what was started, the nearest end first, and waits for it.
func (st *stage) close() {
	if st.proxy != nil {
		ctx, cancel := context.WithTimeout(context.Background(), partingTime)
		st.proxy.Shutdown(ctx) // not Close: its lease would stay at the server for a while
		cancel()
		st.serving.Wait()
	}
	for _, s := range []*side{st.direct, st.proxied} {
		if s != nil {
			_ = s.link.Close() // it only has to stop
		}
	}
	if st.embedded != nil {
		st.embedded.Close()
	}
}

package demo

import (
	"context"
	"net"
	"time"

	"streamproxy/internal/certs"
	"streamproxy/internal/netlab"
	"streamproxy/internal/upstream"
)

// side is one of the two ways to the server.
type side struct {
	name   string
	link   *netlab.Link
	target upstream.Target // the near end of the link
	meter  meter
	// dial connects one client of this side, greeted and ready for commands.
	dial func(context.Context) (net.Conn, error)
}

// newSide opens the link of a side.
func newSide(name string, server upstream.Target) (*side, error) {
	link, err := netlab.Start(netlab.Options{Upstream: server.Addr, Delay: RoundTrip / 2})
	if err != nil {
		return nil, err
	}
	s := &side{name: name, link: link, target: server}
	s.target.Network, s.target.Addr = "tcp", link.Addr()
	if server.TLS != nil {
		s.target.TLS = named(server.Addr)
	}
	s.meter.reset()
	return s, nil
}

// named expects the server's certificate at an address that is not the server's.
func named(addr string) *certs.Source {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	return certs.ForClient(certs.Client{ServerName: host})
}

// begin forgets what was counted while the side was set up.
func (s *side) begin() { s.meter.reset() }

// total is everything since begin, which is took ago.
func (s *side) total(took time.Duration) figures { return s.figures(s.meter.total(), took) }

// recent is what came since the last call of recent, or begin, took ago.
func (s *side) recent(took time.Duration) figures { return s.figures(s.meter.recent(), took) }

// figures is what a reader compares of one side over a span of time.
type figures struct {
	commands        int64 // answered
	asked, writes   int64
	perSecond       float64 // commands
	writesPerSecond float64
	p50, p95        time.Duration
	conns           int // to the server, at the end
}

func (s *side) figures(c counts, took time.Duration) figures {
	seconds := max(took.Seconds(), 1e-9)
	return figures{
		commands: c.latency.TotalCount(), asked: c.asked, writes: c.writes,
		perSecond: float64(c.latency.TotalCount()) / seconds, writesPerSecond: float64(c.writes) / seconds,
		p50: quantile(c, 50), p95: quantile(c, 95),
		conns: int(s.link.Stats().Open),
	}
}

// perWrite is how many commands one write to the server carried, or 0 if there was none.
func (f figures) perWrite() float64 {
	if f.writes == 0 {
		return 0
	}
	return float64(f.asked) / float64(f.writes)
}

// countedConn counts the writes of a client that is its own connection's only user.
type countedConn struct {
	net.Conn
	meter *meter
}

// Write counts and writes.
func (c *countedConn) Write(b []byte) (int, error) {
	c.meter.wrote()
	return c.Conn.Write(b)
}

package telemetry

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/singleflight"
)

// maxConns bounds the connections of one site: a scraper, the probes and an operator
// need a handful, and each costs a descriptor that a client could have had.
const maxConns = 64

// limited is a listener with at most maxConns connections at a time. One more takes the
// place of another, so that those who are slow, or keep what they have, shut nobody out:
// a probe that is not answered can end the process.
type limited struct {
	net.Listener

	mu    sync.Mutex
	conns map[*limitedConn]bool
	turn  uint64 // counts what begins to wait, or to be answered
}

func limit(l net.Listener) *limited {
	return &limited{Listener: l, conns: map[*limitedConn]bool{}}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	lc := &limitedConn{Conn: c, l: l}
	if out := l.enter(lc); out != nil {
		_ = out.Close() // its client has gone already, then
	}
	return lc, nil
}

// enter adds c, and returns the connection that has to go for it, if one has.
func (l *limited) enter(c *limitedConn) (out *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= maxConns {
		for other := range l.conns {
			if out == nil || other.before(out) {
				out = other
			}
		}
		delete(l.conns, out)
	}
	l.conns[c] = true
	l.mark(c, false)
	return out
}

// mark notes what c does from now on. The lock is held.
func (l *limited) mark(c *limitedConn, answered bool) {
	l.turn++
	c.answered, c.since = answered, l.turn
}

// polite ends connections after one answer each while more than half of them are
// taken, so that those who keep theirs busy do not shut out the probes.
func (l *limited) polite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(*limitedConn)
		if l.begin(c) {
			w.Header().Set("Connection", "close")
		}
		defer l.finish(c)
		next.ServeHTTP(w, r)
	})
}

// begin notes that a request has come whole, and reports whether it is to be the last.
func (l *limited) begin(c *limitedConn) (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c != nil {
		l.mark(c, true)
	}
	return len(l.conns) > maxConns/2
}

func (l *limited) finish(c *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c != nil {
		l.mark(c, false)
	}
}

type connKey struct{}

// connContext is the http.Server's ConnContext: by it a request knows its connection.
func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	l *limited
	// Under the listener's lock: whether a request is being answered, and since which turn
	// that is so.
	answered bool
	since    uint64
}

// before reports whether c has to go before other: who has asked for nothing, or not to the
// end, goes first, and of equals who has been so for longest.
func (c *limitedConn) before(other *limitedConn) bool {
	if c.answered != other.answered {
		return other.answered
	}
	return c.since < other.since
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.conns, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// shared gathers for all who ask at the same time at once.
type shared struct {
	from  prometheus.Gatherer
	group singleflight.Group
}

// Gather implements prometheus.Gatherer. What it returns belongs to several callers,
// who only read it.
func (s *shared) Gather() ([]*dto.MetricFamily, error) {
	families, err, _ := s.group.Do("", func() (any, error) { return s.from.Gather() })
	list, _ := families.([]*dto.MetricFamily)
	return list, err
}

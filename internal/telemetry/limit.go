package telemetry

import (
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

// limited is a listener with at most maxConns connections at a time. More wait in the
// kernel's queue until one ends.
type limited struct {
	net.Listener
	slots chan struct{}
	done  chan struct{}
	close func() error
}

func limit(l net.Listener) *limited {
	done := make(chan struct{})
	return &limited{Listener: l, slots: make(chan struct{}, maxConns), done: done,
		close: sync.OnceValue(func() error { close(done); return l.Close() })}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{c, sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error { return l.close() }

// polite ends connections after one answer each while more than half of them are
// taken, so that those who keep theirs busy do not shut out the probes.
func (l *limited) polite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(l.slots) > maxConns/2 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// limitedConn gives its slot back when it is closed.
type limitedConn struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.free()
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

package telemetry

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConns bounds the connections of one site: a scraper, the probes and an operator
// need a handful, and each costs a descriptor that a client could have had.
const maxConns = 64

// grace is how long a connection has its place whoever else comes: in a burst all are
// accepted before the first of them has been read from.
const grace = 25 * time.Millisecond

// answerEvery is the distance between the answers on one connection.
const answerEvery = 10 * time.Millisecond

// limited is a listener with at most maxConns connections at a time. One more takes the
// place of another, so that those who are slow, or keep what they have, shut nobody out:
// a probe that is not answered can end the process.
type limited struct {
	net.Listener

	mu    sync.Mutex
	conns map[*limitedConn]bool
	turn  uint64 // counts what begins to wait, or to be answered
	freed chan struct{}
}

func limit(l net.Listener) *limited {
	return &limited{Listener: l, conns: map[*limitedConn]bool{}, freed: make(chan struct{}, 1)}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	lc := &limitedConn{Conn: c, l: l}
	out, wait := l.enter(lc)
	for wait > 0 {
		l.await(wait)
		out, wait = l.enter(lc)
	}
	if out != nil {
		_ = out.Close() // its client has gone already, then
	}
	return lc, nil
}

// await waits for room, or for d.
func (l *limited) await(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.freed:
	case <-timer.C:
	}
}

// enter adds c, and returns the connection that has to go for it, if one has. If that
// still has time, it tells how much, and adds nothing.
func (l *limited) enter(c *limitedConn) (out *limitedConn, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= maxConns {
		for other := range l.conns {
			if out == nil || other.before(out) {
				out = other
			}
		}
		if wait = time.Until(out.at.Add(grace)); wait > 0 {
			return nil, wait
		}
		delete(l.conns, out)
	}
	l.conns[c] = true
	l.mark(c, connAsks)
	return out, 0
}

// mark notes what c does from now on. The lock is held.
func (l *limited) mark(c *limitedConn, state connState) {
	l.turn++
	c.state, c.since, c.at = state, l.turn, time.Now()
}

// polite ends connections after one answer each while more than half of them are
// taken, so that those who keep theirs busy do not shut out the probes. Answers on one connection
// keep a distance, whatever they cost: who sends requests without end would have the processor
// until the scheduler takes it away, for ten milliseconds, and so would each of its kind.
func (l *limited) polite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(*limitedConn)
		last := l.begin(c)
		if last {
			w.Header().Set("Connection", "close")
		}
		defer l.finish(c, last || r.Close)
		if c != nil && sleepUntil(r.Context(), c.next) != nil {
			return // nobody is there any more
		}
		next.ServeHTTP(w, r)
	})
}

// begin notes that a request has come whole, and reports whether it is to be the last.
func (l *limited) begin(c *limitedConn) (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c != nil {
		l.mark(c, connAnswered)
	}
	return len(l.conns) > maxConns/2
}

// finish notes that a request has been answered, and whether it was the last: the server then
// keeps the connection for a while, for the sake of its client.
func (l *limited) finish(c *limitedConn, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c != nil {
		l.mark(c, connAsks)
		if last {
			c.state = connOver
		}
		c.next = c.at.Add(answerEvery)
	}
}

type connKey struct{}

// connContext is the http.Server's ConnContext: by it a request knows its connection, and ends
// with it, whatever else its client has sent.
func connContext(ctx context.Context, c net.Conn) context.Context {
	if lc, ok := c.(*limitedConn); ok {
		ctx, lc.end = context.WithCancel(ctx)
	}
	return context.WithValue(ctx, connKey{}, c)
}

// limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	l   *limited
	end context.CancelFunc // of its requests
	// next is when the next of them is answered, see polite.
	next time.Time
	// Under the listener's lock: what it does, and since which turn.
	state connState
	since uint64
	at    time.Time // of that turn
}

// connState is what a connection does, in the order in which those that do it go.
type connState uint8

const (
	connOver     connState = iota // its last answer has been given
	connAsks                      // nothing, or a request has not come whole
	connAnswered                  // a request is being answered
)

// before reports whether c has to go before other: by what they do, and of equals who has been
// so for longest.
func (c *limitedConn) before(other *limitedConn) bool {
	if c.state != other.state {
		return c.state < other.state
	}
	return c.since < other.since
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.conns, c)
	c.l.mu.Unlock()
	select {
	case c.l.freed <- struct{}{}:
	default: // it is known that there is room
	}
	if c.end != nil {
		c.end()
	}
	return c.Conn.Close()
}

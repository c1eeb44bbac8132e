package batcher

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// LaneOptions says how a Lane gets its connections.
type LaneOptions struct {
	// Dial returns a greeted shared connection whose Options.Closed is the lane's
	// Lost. It is called by one goroutine at a time and must honour ctx.
	Dial func(ctx context.Context, l *Lane) (*Conn, error)
	// Pause returns how long to wait after the n-th failure in a row (from 1).
	Pause func(n int) time.Duration
	// Final, if set, says that dialling again is no use. Whoever waits gets the error;
	// whoever asks later has it tried once more.
	Final func(err error) bool
	// Events observes.
	Events *Events
}

// Lane keeps one live shared connection for a key. It dials when it is asked for
// one, and again, with growing pauses, when it has lost one.
type Lane struct {
	opts LaneOptions
	cur  atomic.Pointer[Conn]

	mu      sync.Mutex
	dialing bool
	ready   chan struct{} // closed when the dialling under way has ended
	failed  error         // how the last dial ended; nil while none has failed since the last success
	final   bool          // and the dialling with it
	lost    bool          // the last connection has ended, not been retired
	since   int64         // when the last connection was installed
	short   int           // connections in a row that were lost soon after
	closed  bool

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// ErrLaneClosed is returned by a lane that has been closed.
var ErrLaneClosed = errors.New("lane closed")

// NewLane returns a lane that has no connection yet.
func NewLane(opts LaneOptions) *Lane {
	if opts.Events == nil {
		opts.Events = &Events{}
	}
	l := &Lane{opts: opts}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Conn returns the live connection, or nil while there is none.
func (l *Lane) Conn() *Conn {
	c := l.cur.Load()
	if c == nil || c.Retired() {
		return nil
	}
	return c
}

// Holds reports whether the lane has a connection, were it a retired one that still owes
// replies.
func (l *Lane) Holds() bool { return l.cur.Load() != nil }

// Await returns a live connection, dialling if need be. It waits until ctx ends,
// and then returns the error of the last failed dial, if there was one.
func (l *Lane) Await(ctx context.Context) (*Conn, error) {
	for {
		if c := l.Conn(); c != nil {
			return c, nil
		}
		ready, err := l.want()
		if err != nil {
			return nil, err
		}
		select {
		case <-ready:
			if err := l.givenUp(); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, l.lastError(ctx.Err())
		case <-l.ctx.Done():
			return nil, ErrLaneClosed
		}
	}
}

// Want starts dialling if there is no connection, and does not wait for it.
func (l *Lane) Want() { _, _ = l.want() } // a closed lane wants nothing

func (l *Lane) want() (ready <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrLaneClosed
	}
	// Whoever asks has seen no connection, but one may have come since.
	if !l.dialing && l.Conn() == nil {
		l.dialing, l.final = true, false
		l.ready = make(chan struct{})
		l.wg.Go(l.dial)
	}
	return l.ready, nil
}

// givenUp returns the error with which the dialling has ended, if it has.
func (l *Lane) givenUp() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.final {
		return l.failed
	}
	return nil
}

func (l *Lane) lastError(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	return err
}

// soon is the life of a connection below which its loss counts like a failed dial: a
// server that greets and then hangs up must not be dialled at full speed.
const soon = time.Second

// dial runs until there is a connection, there will be none, or the lane is closed.
func (l *Lane) dial() {
	l.mu.Lock()
	failures := l.short
	l.mu.Unlock()
	if failures > 0 && !l.pause(failures) {
		return
	}
	for {
		c, err := l.opts.Dial(l.ctx, l)
		if err == nil {
			l.install(c)
			return
		}
		l.mu.Lock()
		l.failed = err
		if l.final = l.opts.Final != nil && l.opts.Final(err); l.final {
			l.dialing = false
			close(l.ready)
		}
		final := l.final
		l.mu.Unlock()
		if final {
			return
		}
		if failures++; !l.pause(failures) {
			return
		}
	}
}

// pause waits after so many failures; it returns false if the lane is closed.
func (l *Lane) pause(failures int) bool {
	select {
	case <-time.After(l.opts.Pause(failures)):
		return true
	case <-l.ctx.Done():
		return false
	}
}

func (l *Lane) install(c *Conn) {
	l.mu.Lock()
	again := l.lost
	l.lost, l.failed, l.final, l.dialing, l.since = false, nil, false, false, nanotime()
	closed := l.closed
	l.cur.Store(c)
	close(l.ready)
	l.mu.Unlock()
	if closed {
		c.Close()
	}
	if f := l.opts.Events.Reconnected; again && f != nil {
		f()
	}
}

// Lost tells the lane that c has ended, and reports whether c was its connection.
func (l *Lane) Lost(c *Conn) bool {
	if !l.cur.CompareAndSwap(c, nil) {
		return false
	}
	l.mu.Lock()
	l.lost = true
	if time.Duration(nanotime()-l.since) < soon {
		l.short++
	} else {
		l.short = 0
	}
	l.mu.Unlock()
	return true
}

// Replace makes the lane forget c, which is about to be closed or used otherwise,
// and reports whether c was its connection.
func (l *Lane) Replace(c *Conn) bool { return l.cur.CompareAndSwap(c, nil) }

// Down returns how the last dial ended, or nil where none has failed since the
// lane last had a connection.
func (l *Lane) Down() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Close ends the lane and its connection, and waits for both.
func (l *Lane) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.wg.Wait()
	if c := l.cur.Load(); c != nil {
		c.Close()
		<-c.Done()
	}
}

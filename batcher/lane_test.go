package batcher

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// yard is where a lane under test gets its connections. fail, if set, is how a dial
// ends.
type yard struct {
	mu    sync.Mutex
	dials []time.Time
	fail  error
	far   []net.Conn
}

func (y *yard) dial(_ context.Context, l *Lane) (*Conn, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.dials = append(y.dials, time.Now())
	if y.fail != nil {
		return nil, y.fail
	}
	near, far := net.Pipe()
	y.far = append(y.far, far)
	return NewConn(near, Options{Closed: func(c *Conn) { l.Lost(c) }}), nil
}

func (y *yard) set(fail error) {
	y.mu.Lock()
	y.fail = fail
	y.mu.Unlock()
}

func (y *yard) count() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.dials)
}

// hangUp ends the newest connection from the server's side.
func (y *yard) hangUp() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.far[len(y.far)-1].Close()
}

// double is a pause of 10, 20, 40 ms and so on.
func double(n int) time.Duration { return 10 * time.Millisecond << (n - 1) }

func newYard(events *Events) (*Lane, *yard) {
	y := &yard{}
	return NewLane(LaneOptions{Dial: y.dial, Pause: double, Events: events}), y
}

func live1(t *testing.T, l *Lane) *Conn {
	t.Helper()
	c, err := l.Await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A lane dials when it is asked to, once for everybody who asks.
func TestLaneDialsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, y := newYard(nil)
		if l.Conn() != nil || y.count() != 0 {
			t.Error("a lane dialled before it was asked")
		}
		var wg sync.WaitGroup
		var first atomic.Pointer[Conn]
		for range 20 {
			wg.Go(func() {
				if c := live1(t, l); !first.CompareAndSwap(nil, c) && first.Load() != c {
					t.Error("two connections")
				}
			})
		}
		wg.Wait()
		if y.count() != 1 || l.Conn() != first.Load() {
			t.Errorf("%d dials", y.count())
		}
		l.Close()
	})
}

// Failed dials are repeated with growing pauses; who waits gets the reason when its
// time is over, and the connection when there is one.
func TestLaneBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, y := newYard(nil)
		refused := errors.New("refused")
		y.set(refused)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := l.Await(ctx); !errors.Is(err, refused) {
			t.Errorf("awaiting a lane that cannot be dialled: %v", err)
		}
		if !errors.Is(l.Down(), refused) {
			t.Errorf("down because of %v", l.Down())
		}
		start := y.dials[0]
		for i, want := range []time.Duration{0, 10, 30, 70} {
			if got := y.dials[i].Sub(start); got != want*time.Millisecond {
				t.Errorf("dial %d after %v, want %v ms", i+1, got, want)
			}
		}
		y.set(nil)
		live1(t, l)
		if l.Down() != nil {
			t.Errorf("still down because of %v", l.Down())
		}
		l.Close()
	})
}

// Await ends with its context also while a dial takes its time.
func TestLaneAwaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLane(LaneOptions{Pause: double, Dial: func(ctx context.Context, _ *Lane) (*Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		l.Close() // ends the dial
		if _, err := l.Await(t.Context()); !errors.Is(err, ErrLaneClosed) {
			t.Errorf("awaiting a closed lane: %v", err)
		}
		l.Want()
	})
}

// A lost connection is replaced at once if it has lived, and reported.
func TestLaneReplacesTheLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := 0
		l, y := newYard(&Events{Reconnected: func() { again++ }})
		old := live1(t, l)
		time.Sleep(2 * soon)
		y.hangUp()
		<-old.Done()
		synctest.Wait()
		if l.Conn() != nil {
			t.Error("a lost connection is offered")
		}
		before := time.Now()
		if c := live1(t, l); c == old {
			t.Error("the lost connection is back")
		}
		if waited := time.Since(before); waited != 0 {
			t.Errorf("the first dial waited %v", waited)
		}
		if synctest.Wait(); again != 1 {
			t.Errorf("%d reconnects reported", again)
		}
		l.Close()
	})
}

// A server that greets and hangs up is dialled with growing pauses, until a connection
// has lived.
func TestLaneBacksOffFromShortLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, y := newYard(nil)
		lose := func() time.Duration {
			c := live1(t, l)
			y.hangUp()
			<-c.Done()
			synctest.Wait()
			before := time.Now()
			live1(t, l)
			return time.Since(before)
		}
		for i, want := range []time.Duration{10, 20, 40} {
			if got := lose(); got != want*time.Millisecond {
				t.Errorf("loss %d: dialled after %v, want %v ms", i+1, got, want)
			}
		}
		time.Sleep(soon)
		if got := lose(); got != 0 {
			t.Errorf("after a connection that lived: dialled after %v", got)
		}
		l.Close()
	})
}

// A retired connection is not offered; its replacement does not count as a reconnect.
func TestLaneReplacesTheRetired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := 0
		l, y := newYard(&Events{Reconnected: func() { again++ }})
		old := live1(t, l)
		old.Retire()
		if l.Conn() != nil {
			t.Error("a retired connection is offered")
		}
		next := live1(t, l)
		if synctest.Wait(); next == old || y.count() != 2 || again != 0 {
			t.Errorf("%d dials, %d reconnects", y.count(), again)
		}
		if l.Replace(old) || l.Lost(old) {
			t.Error("the retired one still counts as the lane's")
		}
		if !l.Replace(next) || l.Conn() != nil {
			t.Error("the lane does not forget its connection")
		}
		old.Close()
		next.Close()
		l.Close()
	})
}

// Closing ends a pause between dials, and a connection that a dial brings too late.
func TestLaneClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, y := newYard(nil)
		y.set(errors.New("refused"))
		l.Want()
		synctest.Wait()
		before := time.Now()
		l.Close()
		if time.Since(before) != 0 {
			t.Error("closing waited for a pause")
		}

		dialled := make(chan struct{})
		late, yl := newYard(nil)
		late.opts.Dial = func(ctx context.Context, l *Lane) (*Conn, error) {
			close(dialled)
			<-ctx.Done()
			return yl.dial(ctx, l)
		}
		late.Want()
		<-dialled
		late.Close()
		yl.mu.Lock()
		defer yl.mu.Unlock()
		if _, err := yl.far[0].Read(make([]byte, 1)); err == nil {
			t.Error("a connection that came after the end was kept")
		}
	})
}

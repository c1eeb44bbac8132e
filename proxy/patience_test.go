package proxy

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
)

// Whatever a client waits for when it resets its connection, its session ends at once, and gives
// its place among the clients back.
func TestResetEndsWaiting(t *testing.T) {
	for _, words := range [][]string{
		{"GET", "k"}, {"SELECT", "3"}, {"HELLO", "3"}, {"CLIENT", "UNBLOCK", "1"},
		{"BLPOP", "k", "0"}, {"WATCH", "k"}, {"SUBSCRIBE", "c"},
	} {
		t.Run(words[0], func(t *testing.T) {
			f := startFake(t)
			p := startProxy(t, f, func(c *Config) { c.UpstreamWait = time.Hour })
			until(t, "the upstream", func() bool { st := p.Stats(); return st.UpstreamUp && st.Control > 0 })
			f.leave(t, p)
			p.resetWaiting(t, words)
		})
	}
	t.Run("AUTH", func(t *testing.T) {
		f := startFake(t)
		p := startProxy(t, f, func(c *Config) { c.UpstreamWait = time.Hour })
		for range maxProvers {
			if _, err := p.identities.provers.turns.take(t.Context(), rankKnown); err != nil {
				t.Fatal(err)
			}
		}
		p.resetWaiting(t, []string{"AUTH", "user", "password"})
	})
}

// resetWaiting has a client send a command that has to wait, and reset its connection.
func (p *testProxy) resetWaiting(t *testing.T, words []string) {
	t.Helper()
	c := p.client()
	if err := c.Send(redistest.Command(words...)); err != nil {
		t.Fatal(err)
	}
	s := p.sessionOf(t, c)
	until(t, "the session to wait", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.resign != nil })
	reset(c)
	until(t, "the session to end", func() bool { return p.Stats().Clients == 0 })
}

// Who waits for a connection goes on waiting while the queue moves, and --upstream-wait longer.
func TestPatienceWhileTheQueueMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait, moves, step = time.Second, 100, 900 * time.Millisecond
		start := time.Now()
		var last atomic.Pointer[time.Time]
		last.Store(new(time.Time))
		ctx, cancel := queueing(t.Context(), wait, func() time.Time { return *last.Load() })
		defer cancel()
		for range moves {
			time.Sleep(step)
			now := time.Now()
			last.Store(&now)
		}
		<-ctx.Done()
		if got, want := time.Since(start), moves*step+wait; got != want {
			t.Errorf("gave up after %v, want %v", got, want)
		}
		start = time.Now()
		ctx, cancel = queueing(t.Context(), wait, func() time.Time { return time.Time{} })
		defer cancel()
		<-ctx.Done()
		if got := time.Since(start); got != wait {
			t.Errorf("before a queue that stands: %v", got)
		}
	})
}

// A queue moves when somebody like oneself is served, or while anybody gets a connection and one's own key
// has met no trouble.
func TestQueueMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := upstream.NewGate(2, 2, upstream.DefaultBackoff())
		h := newHub(&Proxy{dialer: &upstream.Dialer{Gate: gate}}, upstream.Key{})
		start := time.Now()
		at := func() [2]time.Duration {
			var d [2]time.Duration
			for i, regular := range []bool{false, true} {
				if m := h.moved(regular); !m.IsZero() {
					d[i] = m.Sub(start)
				}
			}
			return d
		}
		expectMoves := func(what string, strangers, regulars time.Duration) {
			t.Helper()
			if got := at(); got != [2]time.Duration{strangers * time.Second, regulars * time.Second} {
				t.Errorf("%s: %v", what, got)
			}
		}
		expectMoves("in the beginning", 0, 0)
		time.Sleep(time.Second)
		if err := gate.Enter(t.Context(), upstream.ForOne); err != nil {
			t.Fatal(err)
		}
		gate.Leave(upstream.ForOne, upstream.Welcome, time.Millisecond)
		expectMoves("one was let in elsewhere", 1, 1)
		h.spares.reserve((*spares).last, claim{regular: true})
		time.Sleep(time.Second)
		h.spares.push(&batcher.Conn{})
		expectMoves("a regular was served", 1, 2)
		h.spares.goOn(0, errors.New("away"))
		expectMoves("the last dial failed", 0, 2)
		h.spares.goOn(0, nil)
		h.visits.fault = errors.New("away")
		expectMoves("the last visit failed", 0, 2)
	})
}

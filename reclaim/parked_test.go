package reclaim

import (
	"context"
	"strings"
	"testing"
	"time"
)

// parkedWorker reads with BLOCK until ctx ends, and asks for abandoned entries only
// after a read that brought something, as current workers do.
func (w *world) parkedWorker(ctx context.Context, c *testClient, name string, streams []string, block string, got chan<- string) {
	defer close(got)
	for ctx.Err() == nil {
		r, err := c.blockingRead(ctx, w.srv, readArgs(name, streams, "COUNT", "5", "BLOCK", block))
		if err != nil || isNull([]byte(r)) {
			continue
		}
		got <- r
		for _, s := range streams {
			c.do(claimArgs(s, name)...)
		}
	}
}

// settleIn gives a worker its first message, by which the engine learns of it.
func (w *world) settleIn(stream string, got <-chan string) {
	w.t.Helper()
	w.raw("XADD", stream, "*", "k", "v")
	id := entriesOf(<-got)
	w.raw("XACK", stream, "g", id[0])
	time.Sleep(time.Second)
}

func TestParkedReaderGetsWhatAnotherLeft(t *testing.T) {
	for _, block := range []string{"2000", "25000", "0"} {
		t.Run("BLOCK "+block, func(t *testing.T) {
			inWorld(t, 1, nil, func(w *world) {
				names := w.streams(3)
				ctx, stop := context.WithCancel(context.Background())
				got := make(chan string)
				go w.parkedWorker(ctx, w.client(0), "w", names, block, got)
				w.settleIn(names[0], got)
				// The dead worker is quicker than the parked one.
				w.srv.mu.Lock()
				id := textOf([]byte(w.srv.xadd([]string{"XADD", names[1], "*", "k", "v"})))
				w.srv.xreadgroup(readArgs("dead", names))
				w.srv.mu.Unlock()
				start := time.Now()
				r := <-got
				if ids := entriesOf(r); len(ids) != 1 || ids[0] != id {
					w.t.Errorf("got %q, want %s", r, id)
				}
				if !strings.HasPrefix(r, "*1\r\n*2\r\n$3\r\ns01\r\n*1\r\n") {
					w.t.Errorf("shape %q", r)
				}
				if took := time.Since(start); took > testMinIdle+2*testInterval+2*time.Second+time.Second {
					w.t.Errorf("after %v", took)
				}
				if p, _ := parsePending([]byte(w.raw("XPENDING", names[1], "g", "-", "+", "1"))); p[0].owner != "w" || p[0].count != 2 {
					w.t.Errorf("pending %+v", p)
				}
				stop()
				for range got {
				}
			})
		})
	}
}

// TestParkedReaderDoesNotGetItsOwnTaskAgain: a worker that does not ask may be at
// work still. When it asks, it gets what a direct one gets.
func TestParkedReaderDoesNotGetItsOwnTaskAgain(t *testing.T) {
	for _, own := range []bool{false, true} {
		t.Run(map[bool]string{false: "by default", true: "by rule"}[own], func(t *testing.T) {
			rule := func(c *Config) {
				if own {
					c.Groups = []GroupRule{{Pattern: "g", MinIdle: testMinIdle, Own: true}}
				}
			}
			inWorld(t, 1, rule, func(w *world) {
				names := w.streams(2)
				ctx, stop := context.WithTimeout(context.Background(), 5*testMinIdle)
				defer stop()
				c := w.client(0)
				got := make(chan string, 10)
				w.raw("XADD", names[0], "*", "k", "v")
				go w.parkedWorker(ctx, c, "w", names, "2000", got)
				first := entriesOf(<-got)
				var again []string
				for r := range got {
					again = append(again, entriesOf(r)...)
				}
				if own != (len(again) > 0) {
					w.t.Errorf("given again: %v", again)
				}
				if !own {
					r := c.do(claimArgs(names[0], "w")...)
					if ids := entriesOf(r); len(ids) != 1 || ids[0] != first[0] {
						w.t.Errorf("its own asking: %q", r)
					}
				}
			})
		})
	}
}

func TestRuleServesAWorkerThatNeverAsks(t *testing.T) {
	rule := func(c *Config) { c.Groups = []GroupRule{{Pattern: "g*", MinIdle: testMinIdle}} }
	inWorld(t, 1, rule, func(w *world) {
		names := w.streams(2)
		id := w.abandon(names[1])
		c := w.client(0)
		ctx, stop := context.WithTimeout(context.Background(), testMinIdle+3*testInterval)
		defer stop()
		r, err := c.blockingRead(ctx, w.srv, readArgs("fresh", names, "BLOCK", "0"))
		if ids := entriesOf(r); err != nil || len(ids) != 1 || ids[0] != id {
			w.t.Errorf("%q, %v", r, err)
		}
	})
}

// TestAskingKeepsParkedReadsAlone: who asks by itself is served when it asks.
func TestAskingKeepsParkedReadsAlone(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(1)
		c, other := w.client(0), w.client(0)
		c.do(readArgs("w", names)...)
		c.do(claimArgs(names[0], "w")...)
		w.abandon(names[0])
		for range 12 { // others keep asking, at a higher min-idle that finds nothing yet
			time.Sleep(testInterval)
			r, err := c.blockingRead(context.Background(), w.srv, readArgs("w", names, "BLOCK", "1000"))
			if err != nil || !isNull([]byte(r)) {
				w.t.Fatalf("given to a parked read: %q %v", r, err)
			}
			other.do("XAUTOCLAIM", names[0], "g", "x", "3600000", "0-0")
		}
	})
}

func TestParkedOptions(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.client(0)
		park := func(args ...string) *Parked { return c.s.Command(scanCommand([]byte(commandOf(args...)))).Parked }
		if p := park("XREADGROUP", "GROUP", "g", "w", "BLOCK", "0", "NOACK", "STREAMS", "s", ">"); p != nil {
			w.t.Error("a read with NOACK is parked")
		}
		if p := park("XREADGROUP", "GROUP", "g", "w", "BLOCK", "0", "STREAMS", "s", "t", ">", "0"); p != nil {
			w.t.Error("a read of history is parked")
		}
		if p := park("XREADGROUP", "GROUP", "g", "w", "STREAMS", "s", ">"); p != nil {
			w.t.Error("a read without BLOCK is parked")
		}
		p := park("XREADGROUP", "GROUP", "g", "STREAMS", "COUNT", "7", "Block", "1500", "STREAMS", "s", ">")
		if p == nil || p.call.consumer != "STREAMS" || p.limit() != 7 || p.call.block != 1500*time.Millisecond {
			w.t.Fatalf("parked %+v", p)
		}
		p.called = true
		time.Sleep(time.Second)
		if o := p.Nil(context.Background(), []byte("*-1\r\n")); !o.Again || o.Block != 500*time.Millisecond {
			w.t.Errorf("called back for nothing: %+v", o)
		}
		time.Sleep(500 * time.Millisecond)
		p.called = true
		if o := p.Nil(context.Background(), []byte("*-1\r\n")); o.Again || string(o.Reply) != "*-1\r\n" {
			w.t.Errorf("its time is up: %+v", o)
		}
		p.End(nil)
		if n := len(w.engines[0].parked); n != 0 {
			w.t.Errorf("%d still parked", n)
		}
	})
}

// TestParkedClaimPagesPastOwnEntries: hundreds of its own tasks lie before the one
// of another.
func TestParkedClaimPagesPastOwnEntries(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		names := w.streams(1)
		c := w.client(0)
		c.do(readArgs("w", names)...)
		c.do(claimArgs(names[0], "w")...)
		for range 350 {
			w.raw("XADD", names[0], "*", "k", "v")
		}
		c.do(readArgs("w", names)...)
		id := w.abandon(names[0])
		time.Sleep(testMinIdle + 2*testInterval)
		r, err := c.blockingRead(context.Background(), w.srv, readArgs("w", names, "BLOCK", "1000", "COUNT", "2"))
		if ids := entriesOf(r); err != nil || len(ids) != 1 || ids[0] != id {
			w.t.Errorf("%q, %v", r, err)
		}
	})
}

// TestParkedReadsAreGivenWhatThereIsRoomFor: what one read is given has a bound, whatever its COUNT
// and however many streams it reads; the next one gets more.
func TestParkedReadsAreGivenWhatThereIsRoomFor(t *testing.T) {
	inWorld(t, 1, func(c *Config) { c.MaxHeldEntries = 5 }, func(w *world) {
		names := w.streams(3)
		c := w.client(0)
		c.do(readArgs("w", names)...)
		c.do(claimArgs(names[0], "w")...)
		for range 4 {
			for _, s := range names {
				w.abandon(s)
			}
		}
		time.Sleep(testMinIdle + 3*testInterval)
		for _, want := range []int{5, 5, 2, 0} {
			r, err := c.blockingRead(context.Background(), w.srv, readArgs("w", names, "BLOCK", "1000", "COUNT", "4"))
			ids := entriesOf(r)
			if err != nil || len(ids) != want {
				w.t.Errorf("%d entries, want %d; %v", len(ids), want, err)
			}
			time.Sleep(2 * testInterval)
		}
		for _, s := range names {
			for _, p := range w.pending(s) {
				if p.owner != "w" || p.count != 2 {
					w.t.Errorf("%+v", p)
				}
			}
		}
	})
}

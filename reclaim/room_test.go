package reclaim

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// narrow lets one claim have 256 KiB.
func narrow(c *Config) { c.MaxClaimBytes = claimShares * smallReply }

// abandonLarge is abandon with an entry of many bytes.
func (w *world) abandonLarge(stream string, size int) (id string) {
	id = textOf([]byte(w.raw("XADD", stream, "*", "k", "v")))
	w.srv.mu.Lock()
	w.srv.sizes[parseFakeID(id)] = size
	w.srv.mu.Unlock()
	w.raw(readArgs("dead", []string{stream})...)
	return id
}

// TestLargeClaimsAreLeftToTheServer: what does not fit goes back as it was, and the client
// has all of it from the server, delivered once.
func TestLargeClaimsAreLeftToTheServer(t *testing.T) {
	for _, plain := range []bool{false, true} {
		inWorld(t, 1, narrow, func(w *world) {
			c := w.known("a", "b")
			if plain {
				w.srv.denied["MULTI"], w.srv.denied["EXEC"] = true, true
			}
			var ids []string
			for range 5 {
				ids = append(ids, w.abandonLarge("a", 100_000))
				w.abandonLarge("b", 100_000)
			}
			time.Sleep(testMinIdle + 2*testInterval)
			r := c.do(claimArgs("a", "w")...)
			if got := entriesOf(r); !slices.Equal(got, ids) {
				w.t.Errorf("got %v, want %v", got, ids)
			}
			if n := w.forward.of("large"); n != 1 {
				w.t.Errorf("%d forwarded", n)
			}
			time.Sleep(time.Second / 2)
			for _, p := range w.pending("a") {
				if p.owner != "w" || p.count != 2 {
					w.t.Errorf("claimed: %+v", p)
				}
			}
			for _, p := range w.pending("b") {
				if p.owner != "dead" || p.count != 1 || p.idle < testMinIdle {
					w.t.Errorf("claimed ahead: %+v", p)
				}
			}
			before := w.srv.executed("XAUTOCLAIM")
			if got := entriesOf(c.do(claimArgs("b", "w")...)); len(got) != 5 || c.last() != Forward {
				w.t.Errorf("%v: %v", c.last(), got)
			}
			if n := w.srv.executed("XAUTOCLAIM") - before; n != 1 {
				w.t.Errorf("claimed %d times", n)
			}
			w.raw(append([]string{"XACK", "a", "g"}, ids...)...)
			time.Sleep(largeFor * testInterval)
			pass1(c, "w", []string{"a", "b"}) // they are read still
			w.abandon("a")
			time.Sleep(testMinIdle + 2*testInterval)
			if c.do(claimArgs("a", "w")...); c.last() != Defer {
				w.t.Errorf("small again: %v", c.last())
			}
			e := w.engines[0]
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.reserved != 0 {
				w.t.Errorf("room for %d replies is lost", e.reserved)
			}
		})
	}
}

// TestClaimsShareTheRoom: a claim for which there is none is the server's.
func TestClaimsShareTheRoom(t *testing.T) {
	inWorld(t, 1, narrow, func(w *world) {
		names := strings.Split("abcdefghijklmnopqrst", "")
		c := w.known(names...)
		for _, s := range names {
			w.abandon(s)
		}
		time.Sleep(testMinIdle + 2*testInterval)
		e := w.engines[0]
		reserve := func(n int) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.reserved += n
		}
		reserve(claimShares)
		if got := entriesOf(c.do(claimArgs("a", "w")...)); len(got) != 1 || w.forward.of("large") != 1 {
			w.t.Errorf("got %v, %d forwarded", got, w.forward.of("large"))
		}
		reserve(-3)
		if got := entriesOf(c.do(claimArgs("b", "w")...)); len(got) != 1 || e.heldNow() != 0 || w.forward.of("large") != 1 {
			w.t.Errorf("got %v, %d held, %d forwarded", got, e.heldNow(), w.forward.of("large"))
		}
		reserve(3 - claimShares)
		if got := entriesOf(c.do(claimArgs("c", "w")...)); len(got) != 1 || e.heldNow() != claimShares/2 {
			w.t.Errorf("got %v, %d held", got, e.heldNow())
		}
	})
}

// TestParkedReaderGetsLargeEntriesInTurn: as many as fit, then one at a time; one that does
// not fit alone is passed over, and stays as it was.
func TestParkedReaderGetsLargeEntriesInTurn(t *testing.T) {
	rule := func(c *Config) {
		narrow(c)
		c.Groups = []GroupRule{{Pattern: "g", MinIdle: testMinIdle}}
	}
	inWorld(t, 1, rule, func(w *world) {
		names := w.streams(2)
		ctx, stop := context.WithTimeout(context.Background(), 3*testMinIdle)
		defer stop()
		c := w.client(0)
		w.raw("XADD", names[0], "*", "k", "v")
		c.do(readArgs("w", names)...)
		var ids []string
		for range 4 {
			ids = append(ids, w.abandonLarge(names[1], 100_000))
		}
		giant := w.abandonLarge(names[1], 300_000)
		ids = append(ids, w.abandonLarge(names[1], 100_000))
		var got []string
		most := 0
		for ctx.Err() == nil {
			r, err := c.blockingRead(ctx, w.srv, readArgs("w", names, "COUNT", "10", "BLOCK", "2000"))
			if err != nil || isNull([]byte(r)) {
				continue
			}
			most = max(most, len(r))
			got = append(got, entriesOf(r)...)
		}
		if !slices.Equal(got, ids) || most > smallReply+1000 {
			w.t.Errorf("got %v with at most %d bytes at once, want %v", got, most, ids)
		}
		for _, p := range w.pending(names[1]) {
			if owner, count := map[bool]string{true: "dead", false: "w"}[p.id == giant], map[bool]int64{true: 1, false: 2}[p.id == giant]; p.owner != owner || p.count != count {
				w.t.Errorf("%+v", p)
			}
		}
	})
}

// A claim asks for few entries of a stream of which none has come, and then for about a portion.
func TestPortions(t *testing.T) {
	c := &Config{}
	var k target
	want := func(n int) {
		t.Helper()
		if got := c.portionOf(&k, 1_000_000); got != n {
			t.Errorf("with entries of %d bytes: %d, want %d", k.entrySize, got, n)
		}
	}
	want(fewEntries)
	k.weigh(0, 0)
	want(fewEntries)
	k.weigh(100*50, 50)
	want(claimMost)
	k.weigh(10<<20, 10) // at once
	want(1)
	k.weigh(100, 1) // by and by
	want(1)
	for range 20 {
		k.weigh(10_000, 10)
	}
	want(portion / k.entrySize)
	if n := portion / k.entrySize; n < 100 || n > claimMost {
		t.Errorf("entries of a kilobyte come by %d", n)
	}
	if got := c.portionOf(&k, 7); got != 7 {
		t.Errorf("%d, where 7 are asked for", got)
	}
}

// A client that has had no reply yet is given little: many of its kind leave without reading any.
func TestStrangersAreGivenLittle(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("a")
		for range fewEntries + 20 {
			w.raw("XADD", "a", "*", "k", "v")
		}
		w.raw(readArgs("dead", []string{"a"})...)
		time.Sleep(testMinIdle + 2*testInterval)
		for _, want := range []int{strangersEntries, fewEntries + 20 - strangersEntries} {
			c.s.SetStranger(want == strangersEntries)
			if n := len(entriesOf(c.do("XAUTOCLAIM", "a", "g", "w", testMinIdleMS, "0-0", "COUNT", "1000"))); n != want {
				w.t.Errorf("%d entries, not %d", n, want)
			}
		}
	})
}

package reclaim

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func TestForwardedReasons(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s")
		for reason, args := range map[string][]string{
			"form":           {"XAUTOCLAIM", "s", "g", "w", testMinIdleMS, "0-0", "JUSTID"},
			"start":          {"XAUTOCLAIM", "s", "g", "w", testMinIdleMS, "7-7"},
			"form, no start": {"XAUTOCLAIM", "s", "g", "w", testMinIdleMS, ""},
			"min_idle":       {"XAUTOCLAIM", "s", "g", "w", "1999", "0-0"},
			"unknown":        {"XAUTOCLAIM", "none", "g", "w", testMinIdleMS, "0-0"},
		} {
			reason, _, _ = strings.Cut(reason, ",")
			before := w.forward.of(reason)
			c.do(args...)
			if c.last() != Forward || w.forward.of(reason) != before+1 {
				w.t.Errorf("%s: %v, counted %d", reason, c.last(), w.forward.of(reason)-before)
			}
		}
		time.Sleep(2 * time.Minute) // the session is idle, but here: rounds go on
		if c.do(claimArgs("s", "w")...); c.last() != Answer {
			w.t.Errorf("after a pause: %v", c.last())
		}
	})
}

// TestCursorsAreFollowed: a client that carries its cursor on starts where we said.
func TestCursorsAreFollowed(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s")
		var ids []string
		for range 3 {
			ids = append(ids, w.abandon("s"))
		}
		time.Sleep(testMinIdle + 2*testInterval)
		start, got := "0-0", ""
		for range 4 {
			r := c.do("XAUTOCLAIM", "s", "g", "w", testMinIdleMS, start, "COUNT", "1")
			if c.last() == Forward {
				w.t.Errorf("start %s was forwarded", start)
			}
			parts, err := elements([]byte(r))
			if err != nil {
				w.t.Fatal(err)
			}
			start = textOf(parts[0])
			got += strings.Join(entriesOf(r), " ") + " "
		}
		if want := strings.Join(ids, " ") + "  "; got != want {
			w.t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestErrorsOfTheServerReachTheClientAndEndTheProfile(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s", "t")
		w.abandon("s")
		time.Sleep(testMinIdle + 2*testInterval)
		w.srv.mu.Lock()
		delete(w.srv.streams["s"].groups, "g")
		w.srv.mu.Unlock()
		r := c.block(formOf("s", "g", "w", testMinIdleMS, "10", "tok")...)
		if !strings.Contains(r, "*3\r\n+OK\r\n-NOGROUP ") || !strings.HasSuffix(r, "\r\n:1\r\n") {
			w.t.Errorf("%q", r)
		}
		if n := len(w.engines[0].Streams()); n != 1 {
			w.t.Errorf("%d profiles left", n)
		}
		if c.do(claimArgs("s", "w")...); c.last() != Forward {
			w.t.Error("judged after its end")
		}
		w.raw("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM") // it is there again, and learned anew
		c.do(claimArgs("s", "w")...)
		c.do(claimArgs("s", "w")...)
		if c.last() == Forward {
			w.t.Error("not learned again")
		}
	})
}

func TestDeniedIsNotAskedAgainAtOnce(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		w.srv.denied["XPENDING"] = true
		c := w.known("s")
		time.Sleep(time.Second)
		before := w.srv.executed("XPENDING")
		for range 50 {
			pass1(c, "w", []string{"s"})
			time.Sleep(time.Second)
		}
		if n := w.srv.executed("XPENDING") - before; n > 1 {
			w.t.Errorf("asked %d times", n)
		}
		if w.forward.of("denied") == 0 {
			w.t.Error("not counted")
		}
		w.srv.mu.Lock()
		w.srv.denied["XPENDING"] = false
		w.srv.mu.Unlock()
		time.Sleep(deniedFor * testInterval)
		pass1(c, "w", []string{"s"})
		pass1(c, "w", []string{"s"})
		if c.last() == Forward {
			w.t.Error("not learned when it was allowed again")
		}
	})
}

// A server that does not let the proxy itself in is not asked again for every command either.
func TestLockedOutIsNotAskedAgainAtOnce(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		w.srv.refused = map[string]string{"TIME": "-NOAUTH Authentication required.\r\n"}
		c := w.known("s")
		time.Sleep(time.Second)
		before := w.srv.executed("TIME")
		for range 50 {
			pass1(c, "w", []string{"s"})
			time.Sleep(time.Second)
		}
		if n := w.srv.executed("TIME") - before; n > 1 {
			w.t.Errorf("asked %d times", n)
		}
		if c.last() != Forward {
			w.t.Error("answered here")
		}
		w.srv.mu.Lock()
		w.srv.refused["TIME"] = ""
		w.srv.mu.Unlock()
		time.Sleep(deniedFor * testInterval)
		pass1(c, "w", []string{"s"})
		pass1(c, "w", []string{"s"})
		if c.last() == Forward {
			w.t.Error("not learned when it was let in")
		}
	})
}

func TestObserveForwardsAndCompares(t *testing.T) {
	var mu sync.Mutex
	same, differed := 0, 0
	inWorld(t, 1, func(c *Config) {
		c.Mode = Observe
		c.Events.Observed = func(_ string, d bool) {
			mu.Lock()
			defer mu.Unlock()
			if d {
				differed++
			} else {
				same++
			}
		}
	}, func(w *world) {
		c := w.known("s")
		c.do("GET", "autoclaim:g:s")
		c.do("SET", "autoclaim:g:s", "tok", "NX")
		c.do(claimArgs("s", "w")...)
		c.block(formOf("s", "g", "w", testMinIdleMS, "10", "tok")...)
		w.abandon("s")
		time.Sleep(testMinIdle)
		w.engines[0].mu.Lock()
		for _, t := range w.engines[0].targets {
			for _, p := range t.profiles {
				w.engines[0].setHot(p, nil) // the last round was just before
			}
		}
		w.engines[0].mu.Unlock()
		c.do(claimArgs("s", "w")...)
		for _, a := range c.actions {
			if a == Answer {
				w.t.Fatal("something was answered here")
			}
		}
		mu.Lock()
		defer mu.Unlock()
		// The form's lock is held by the SET above, so its reply is another one.
		if same < 2 || differed != 2 {
			w.t.Errorf("%d the same, %d different", same, differed)
		}
	})
}

func TestOffLooksAtNothing(t *testing.T) {
	inWorld(t, 1, func(c *Config) { c.Mode = Off }, func(w *world) {
		c := w.known("s")
		if len(w.engines[0].Streams()) != 0 || len(w.engines[0].consumers) != 0 || c.last() != Forward {
			w.t.Error("something is known")
		}
	})
}

// TestConsumersMayHaveAnyName: options are read by position.
func TestConsumersMayHaveAnyName(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		w.raw("XGROUP", "CREATE", "COUNT", "GROUP", "$", "MKSTREAM")
		c := w.client(0)
		for range 3 { // forwarded, waits for the learning, answered
			c.do("XREADGROUP", "GROUP", "GROUP", "STREAMS", "COUNT", "1", "STREAMS", "COUNT", ">")
			c.do("XAUTOCLAIM", "COUNT", "GROUP", "STREAMS", testMinIdleMS, "0-0", "COUNT", "5")
		}
		if c.last() != Answer {
			w.t.Errorf("%v", c.last())
		}
	})
}

// TestSessionsChangeTheirIdentity: what was one user's is not the next one's.
func TestSessionsChangeTheirIdentity(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s")
		if c.do(claimArgs("s", "w")...); c.last() != Answer {
			w.t.Fatal("not known")
		}
		c.s.Become(Identity{Proto: 3})
		if r := c.do("GET", "autoclaim:g:s"); r != bulkOf(coldToken) {
			w.t.Errorf("%q", r)
		}
		c.s.Become(Identity{DB: 3, Proto: 3})
		if c.do(claimArgs("s", "w")...); c.last() != Forward {
			w.t.Error("another database's profile")
		}
		c.s.Leave()
		e := w.engines[0]
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, k := range e.consumers {
			if k.live != 0 {
				w.t.Errorf("%+v has %d connections", k.consumerKey, k.live)
			}
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.client(0)
		for i := range 3 * maxSessionConsumers {
			c.do("XREADGROUP", "GROUP", "g", strings.Repeat("x", i+1), "STREAMS", "s", ">")
		}
		for i := range 2 * maxReadSets {
			c.do("XREADGROUP", "GROUP", "g", "x", "STREAMS", strings.Repeat("s", i+1), ">")
		}
		e := w.engines[0]
		e.mu.Lock()
		if n := len(e.consumers); n > maxSessionConsumers {
			w.t.Errorf("%d consumers", n)
		}
		if n := len(c.s.consumers[0].reads); n > maxReadSets {
			w.t.Errorf("%d sets of streams", n)
		}
		e.mu.Unlock()
		c.s.Leave()
		e.mu.Lock()
		defer e.mu.Unlock()
		if n := len(e.consumers); n != 0 {
			w.t.Errorf("%d consumers left", n)
		}
	})
}

func TestDeletedConsumersAreCounted(t *testing.T) {
	n := int64(0)
	inWorld(t, 1, func(c *Config) { c.Events.ConsumerDeleted = func(k int64) { n += k } }, func(w *world) {
		v := w.client(0).s.Command(scanCommand([]byte(commandOf("XGROUP", "DELCONSUMER", "s", "g", "w"))))
		v.Watch.Seen([]byte(":7\r\n"))
		if n != 7 || v.Action != Forward {
			w.t.Errorf("%d", n)
		}
	})
}

package reclaim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// known is a world with one stream that is known and cold, and a client.
func (w *world) known(names ...string) *testClient {
	for _, s := range names {
		w.raw("XGROUP", "CREATE", s, "g", "$", "MKSTREAM")
	}
	c := w.client(0)
	pass1(c, "w", names)
	pass1(c, "w", names)
	return c
}

// last is what became of the last command.
func (c *testClient) last() Action { return c.actions[len(c.actions)-1] }

func (w *world) heatNow(stream string) (id string) {
	id = w.abandon(stream)
	e := w.engines[0]
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.targets {
		for _, p := range t.profiles {
			if t.stream == stream {
				e.setHot(p, &hit{id: id, owner: "dead", count: 1, at: time.Now()})
			}
		}
	}
	return id
}

const lockOfS = "autoclaim:g:s:{1}"

func TestLockSequence(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s:{1}")
		if r := c.do("GET", lockOfS); r != "$11\r\nstreamproxy\r\n" {
			w.t.Errorf("cold GET: %q", r)
		}
		w.heatNow("s:{1}")
		if r := c.do("GET", lockOfS); r != "$-1\r\n" || c.last() != Answer {
			w.t.Errorf("hot GET: %q", r)
		}
		if r := c.do("SET", lockOfS, "tok", "NX", "PX", "60000"); r != "+OK\r\n" || c.last() != Answer {
			w.t.Errorf("SET: %q", r)
		}
		// The profile ends in the middle of the sequence: what began here ends here.
		e := w.engines[0]
		e.mu.Lock()
		for _, t := range e.targets {
			for _, p := range t.profiles {
				e.endProfile(p)
			}
		}
		e.mu.Unlock()
		if r := c.do("EVALSHA", lockSHAs[scriptRelease], "1", lockOfS, "tok"); r != ":1\r\n" || c.last() != Answer {
			w.t.Errorf("release: %q", r)
		}
		// Released is released: the second time the server says what it knows.
		if c.do("EVALSHA", lockSHAs[scriptRelease], "1", lockOfS, "tok"); c.last() != Forward {
			w.t.Error("a token was used twice")
		}
		if _, there := w.srv.keys[lockOfS]; there {
			w.t.Error("the real lock was written")
		}
	})
}

// TestGrantOutlivesTheMood: granted while cold, hot before the release, and the
// other way round.
func TestGrantOutlivesTheMood(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s:{1}")
		c.do("SET", lockOfS, "one", "NX")
		id := w.heatNow("s:{1}")
		c.do("SET", lockOfS, "two", "NX")
		w.srv.mu.Lock()
		for _, p := range w.srv.streams["s:{1}"].groups["g"].pel {
			p.at = p.at.Add(-2 * testMinIdle)
		}
		w.srv.mu.Unlock()
		if r := c.do(claimArgs("s:{1}", "w")...); !strings.Contains(r, id) {
			w.t.Errorf("claim: %q", r)
		}
		for _, token := range []string{"one", "two"} {
			if r := c.do("EVALSHA", lockSHAs[scriptRelease], "1", lockOfS, token); r != ":1\r\n" {
				w.t.Errorf("release of %s: %q", token, r)
			}
		}
	})
}

// TestForwardedLockStaysAtTheServer: a lock taken there is released there, although
// the stream has become known in between.
func TestForwardedLockStaysAtTheServer(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		w.raw("XGROUP", "CREATE", "s:{1}", "g", "$", "MKSTREAM")
		w.raw("SCRIPT", "LOAD", releaseBody)
		c := w.client(0)
		c.do(readArgs("w", []string{"s:{1}"})...)
		c.do("GET", lockOfS)
		c.do("SET", lockOfS, "tok", "NX", "PX", "60000")
		c.do(claimArgs("s:{1}", "w")...)
		if r := c.do("EVALSHA", lockSHAs[scriptRelease], "1", lockOfS, "tok"); r != ":1\r\n" || c.last() != Forward {
			w.t.Errorf("release: %q", r)
		}
		if w.srv.keyCount() != 0 {
			w.t.Errorf("the lock is still there: %v", w.srv.keys)
		}
		if c.do("GET", lockOfS); c.last() == Forward {
			w.t.Error("not known afterwards")
		}
	})
}

func TestExtendAndReacquire(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s:{1}")
		eval := func(sc lockScript, rest ...string) string {
			return c.do(append([]string{"EVALSHA", lockSHAs[sc], "1", lockOfS, "tok"}, rest...)...)
		}
		c.do("SET", lockOfS, "tok", "PX", "1000", "NX")
		if r := eval(scriptExtend, "2000", "0"); r != ":1\r\n" {
			w.t.Errorf("extend: %q", r)
		}
		time.Sleep(2900 * time.Millisecond)
		if r := eval(scriptReacquire, "5000"); r != ":1\r\n" || c.last() != Answer {
			w.t.Errorf("reacquire: %q", r)
		}
		time.Sleep(4900 * time.Millisecond)
		if r := eval(scriptExtend, "1000", "1"); r != ":1\r\n" {
			w.t.Errorf("extend, replacing: %q", r)
		}
		time.Sleep(1100 * time.Millisecond)
		if eval(scriptRelease); c.last() != Forward {
			w.t.Error("a lock whose time is up was released here")
		}
		c.do("SET", lockOfS, "tok", "NX") // without a lifetime there is nothing to extend
		if r := eval(scriptExtend, "2000", "0"); r != ":0\r\n" {
			w.t.Errorf("extend without a lifetime: %q", r)
		}
		if eval(scriptExtend, "soon", "0"); c.last() != Forward {
			w.t.Error("a number that is none was judged here")
		}
		time.Sleep(tokenLife + time.Minute)
		if n := w.engines[0].granted.Load(); n != 0 {
			w.t.Errorf("%d tokens remembered", n)
		}
	})
}

// TestOtherKeysAreNobodysBusiness: the scripts and the commands of a lock alone are
// no permission.
func TestOtherKeysAreNobodysBusiness(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s:{1}")
		for _, args := range [][]string{
			{"GET", "autoclaim:g:other"},
			{"GET", "x"},
			{"SET", "autoclaim:g:other", "tok", "NX"},
			{"SET", lockOfS, "tok"},
			{"SET", lockOfS, "tok", "NX", "GET"},
			{"SET", lockOfS, "tok", "XX", "PX", "5"},
			{"EVALSHA", lockSHAs[scriptRelease], "1", lockOfS, "unknown"},
			{"EVALSHA", strings.Repeat("0", 40), "1", lockOfS, "tok"},
		} {
			if c.do(args...); c.last() != Forward {
				w.t.Errorf("%v was judged", args)
			}
		}
		// Another database, another user, or one that has proven another password: not this profile's.
		for _, id := range []Identity{{DB: 1, Proto: 2}, {User: User{Name: "else"}, Proto: 2}, {User: User{Proof: "else"}, Proto: 2}} {
			other := newTestClient(w.t, w.engines[0], w.srv, id)
			w.clients = append(w.clients, other)
			if other.do("GET", lockOfS); other.last() != Forward {
				w.t.Errorf("judged for %+v", id)
			}
			if other.do(claimArgs("s:{1}", "w")...); other.last() != Forward {
				w.t.Errorf("claim judged for %+v", id)
			}
		}
	})
}

// TestAmbiguousLockBelongsToNobody: two groups and streams render to one key.
func TestAmbiguousLockBelongsToNobody(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		w.raw("XGROUP", "CREATE", "b:s", "a", "$", "MKSTREAM")
		w.raw("XGROUP", "CREATE", "s", "a:b", "$", "MKSTREAM")
		c := w.client(0)
		for range 2 {
			c.do("XAUTOCLAIM", "b:s", "a", "w", testMinIdleMS, "0")
			c.do("XAUTOCLAIM", "s", "a:b", "w", testMinIdleMS, "0")
			time.Sleep(time.Second)
		}
		if c.last() != Answer {
			w.t.Fatal("not known")
		}
		if c.do("GET", "autoclaim:a:b:s"); c.last() != Forward {
			w.t.Error("an ambiguous lock was judged")
		}
	})
}

func TestFormIsRecognizedExactly(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s:{1}")
		good := formOf("s:{1}", "g", "w", testMinIdleMS, "10", "tok")
		if r := c.block(good...); r != formHead+emptySeven+":1\r\n" {
			w.t.Errorf("cold: %q", r)
		}
		bend := func(i, j int, value string) [][]string {
			f := formOf("s:{1}", "g", "w", testMinIdleMS, "10", "tok")
			f[i][j] = value
			return f
		}
		for what, f := range map[string][][]string{
			"another lock":       bend(1, 1, "autoclaim:g:x"),
			"another lock freed": bend(3, 3, "autoclaim:g:x"),
			"another token":      bend(3, 4, "x"),
			"another script":     bend(3, 1, lockSHAs[scriptExtend]),
			"JUSTID":             bend(2, 7, "JUSTID"),
			"a start of its own": bend(2, 5, "5-5"),
			"one command more":   append(good[:4:4], []string{"GET", "x"}, []string{"EXEC"}),
		} {
			v := c.s.Block(scanAll(f))
			if v.Action != Forward {
				t.Errorf("%s: %v", what, v.Action)
			}
		}
	})
}

// TestForwardedFormBringsItsScript: a SCRIPT FLUSH of a third party kills nobody.
func TestForwardedFormBringsItsScript(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		w.raw("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
		c := w.client(0)
		r := c.block(formOf("s", "g", "w", testMinIdleMS, "10", "tok")...)
		if want := formHead + emptySeven + ":1\r\n"; r != want || c.last() != Forward {
			w.t.Errorf("%q, want %q", r, want)
		}
		time.Sleep(time.Second)
		if r := c.do("SCRIPT", "EXISTS", lockSHAs[scriptRelease]); r != "*1\r\n:1\r\n" || c.last() != Answer {
			w.t.Errorf("EXISTS: %q", r)
		}
		for _, args := range [][]string{
			{"SCRIPT", "EXISTS", strings.Repeat("0", 40)},
			{"SCRIPT", "EXISTS", lockSHAs[scriptRelease], lockSHAs[scriptExtend]},
			{"SCRIPT", "FLUSH"},
			{"SCRIPT", "EXISTS", lockSHAs[scriptRelease]},
		} {
			if c.s.Command(scanCommand([]byte(commandOf(args...)))).Action != Forward {
				w.t.Errorf("%v was answered", args)
			}
		}
	})
}

func TestLockKeysAreRendered(t *testing.T) {
	got := lockKeys([]string{"a:{group}:{stream}", "{stream}.lock"}, "{group}", "G")
	if strings.Join(got, " ") != "a:G:{group} {group}.lock" {
		t.Errorf("%q", got)
	}
}

// TestWaitingForALearningEnds: a learning that hangs holds nobody for long.
func TestWaitingForALearningEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, srv: newFakeServer()}
		e := w.start("p", nil)
		w.raw("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
		w.raw("XGROUP", "CREATE", "t", "g", "$", "MKSTREAM")
		c := w.client(0)
		c.do(readArgs("w", []string{"s", "t"})...)
		time.Sleep(time.Second)
		w.srv.mu.Lock()
		w.srv.latency.Store(int64(3 * time.Second))
		w.srv.mu.Unlock()
		c.do(claimArgs("s", "w")...)
		start := time.Now()
		c.do("GET", "autoclaim:g:t") // 2 s of patience, then 6 s at the server
		if took := time.Since(start); took > learnPatience+6*time.Second {
			t.Errorf("took %v", took)
		}
		e.Close()
	})
}

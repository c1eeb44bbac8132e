package reclaim

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// auditMemory compares what is counted as remembered with what is.
func (e *Engine) auditMemory(t *testing.T, clients []*testClient) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	want := profileBytes * e.profiles
	for _, c := range e.consumers {
		n := consumerBytes + len(c.group) + len(c.name)
		for _, rs := range c.reads {
			n += setBytes + len(rs.key) + sizeOf(rs.streams, memberBytes)
		}
		for stream, cursor := range c.cursors {
			n += noteBytes + len(stream) + len(cursor)
		}
		if n != c.size {
			t.Errorf("consumer %.20s: %d bytes are counted, want %d", c.name, c.size, n)
		}
		want += n
	}
	for _, target := range e.targets {
		want += target.size
	}
	for _, w := range e.sweeps {
		want += w.size
	}
	for _, l := range e.learnings {
		want += sizeOf(l.streams, learningBytes)
	}
	for p := range e.parked {
		want += p.size
	}
	for k := range e.denied {
		want += k.noteSize()
	}
	for k := range e.tokens {
		want += k.size()
	}
	for _, c := range clients {
		if c.s.e == e {
			want += c.s.last.size
		}
	}
	if got := e.memory.bytes.Load(); got != int64(want) {
		t.Errorf("%d bytes are counted as remembered, want %d", got, want)
	}
}

// What is remembered stays below its bound, but for what one command names, whatever clients name
// in whichever command. What was known before goes on to be answered.
func TestRememberedBytesAreBounded(t *testing.T) {
	const most = 64 << 10
	inWorld(t, 1, func(c *Config) { c.MaxRememberedBytes = most }, func(w *world) {
		c := w.known("s")
		name := strings.Repeat("n", maxNameBytes-8)
		ways := map[string]func(c *testClient, i int){
			"consumers": func(c *testClient, i int) { c.do(claimArgs("s", fmt.Sprint(i, name))...) },
			"groups": func(c *testClient, i int) {
				c.do("XAUTOCLAIM", "s", fmt.Sprint(i, name), "w", testMinIdleMS, "0-0")
			},
			"streams": func(c *testClient, i int) { c.do(claimArgs(fmt.Sprint(i, name), "w")...) },
			"sets": func(c *testClient, i int) {
				c.do("XREADGROUP", "GROUP", "g", "w", "STREAMS", fmt.Sprint(i, name), "s", ">", ">")
			},
			"locks": func(c *testClient, i int) { c.do("SET", "autoclaim:g:s", fmt.Sprint(i, name), "NX") },
			"learned": func(c *testClient, i int) {
				w.raw("XGROUP", "CREATE", fmt.Sprint(i, name), "g", "$", "MKSTREAM")
				c.do(claimArgs(fmt.Sprint(i, name), "w")...)
			},
		}
		e := w.engines[0]
		for what, way := range ways {
			for range 4 {
				c := w.client(0)
				for i := range 60 {
					way(c, i)
					if n := e.Bytes(); n > most+8*maxNameBytes {
						t.Fatalf("%s: %d bytes are remembered", what, n)
					}
				}
				defer c.s.Leave()
			}
		}
		if e.Bytes() < most {
			t.Errorf("%d bytes are remembered: it was not full", e.Bytes())
		}
		if c.do(claimArgs("s", "w")...); c.last() != Answer {
			t.Error("what was known is not answered any more")
		}
	})
}

// Names of any length pass, and are not remembered.
func TestLongNamesAreNotRemembered(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s")
		e := w.engines[0]
		before := e.Bytes()
		long := strings.Repeat("n", maxNameBytes+1)
		w.raw("XGROUP", "CREATE", long, "g", "$", "MKSTREAM")
		w.raw("XGROUP", "CREATE", "s", long, "$")
		for _, args := range [][]string{
			claimArgs("s", long), claimArgs(long, "w"), {"XAUTOCLAIM", "s", long, "w", testMinIdleMS, "0-0"},
			{"XREADGROUP", "GROUP", "g", long, "STREAMS", "s", ">"},
			{"XREADGROUP", "GROUP", "g", "w", "STREAMS", "s", long, ">", ">"},
			{"SET", "autoclaim:g:s", long, "NX"},
		} {
			c.do(args...)
			if c.last() != Forward {
				t.Errorf("%.20q is not forwarded", args)
			}
		}
		time.Sleep(time.Second) // for what may be learned
		c.s.remember(lastRead{})
		if n := e.Bytes(); n > before {
			t.Errorf("%d bytes more are remembered", n-before)
		}
	})
}

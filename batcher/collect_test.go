package batcher

import (
	"strings"
	"testing"
)

// collect is submit for commands behind which more is to come.
func collect(t *testing.T, c *Conn, s Sink, keys ...string) {
	t.Helper()
	for _, k := range keys {
		if err := c.Collect(s, get(k), 1); err != nil {
			t.Fatal(err)
		}
	}
}

// What is collected leaves in one piece, when it is pushed or something is submitted behind it.
func TestCollectedLeavesAtOnce(t *testing.T) {
	var f flushes
	c, p := connect(t, Options{Events: &Events{Flushed: f.note}})
	go p.echo()
	r := newRecorder()
	collect(t, c, r, "a", "b", "c")
	if len(f.size) > 0 {
		t.Error("some have left before they were pushed")
	}
	c.Push()
	if _, n := f.last(); n != 3 {
		t.Errorf("a write with %d of three collected commands", n)
	}
	c.Push() // nothing is there
	r.wait(t, "the replies", func() bool { return r.ended == 3 })
	collect(t, c, r, "d", "e")
	submit(t, c, r, "f")
	r.expect(t, 6, "$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n")
}

// No more than a good write's worth is collected.
func TestCollectedIsBounded(t *testing.T) {
	c, p := connect(t, Options{})
	go p.echo()
	r := newRecorder()
	collect(t, c, r, "a", strings.Repeat("x", collected))
	r.wait(t, "the replies", func() bool { return r.ended == 2 })
}

// What was collected when the connection ended has not been sent.
func TestCollectedIsNotSentOnALostConnection(t *testing.T) {
	c, p := connect(t, Options{})
	r := newRecorder()
	submit(t, c, r, "a")
	p.take(1)
	collect(t, c, r, "b", "c")
	c.Close()
	await(t, c.Done(), "the connection to end")
	c.Push()
	r.expect(t, 3, "?!!")
	if c.Collect(r, get("d"), 1) == nil {
		t.Error("a lost connection has taken a command")
	}
}

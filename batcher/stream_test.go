package batcher

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A body travels in pieces and is one command; an error reply may come before its end.
func TestBody(t *testing.T) {
	c, p := connect(t, Options{})
	r := newRecorder()
	if err := c.OpenBody(r); err != nil {
		t.Fatal(err)
	}
	raw := get("a-key-of-some-length")
	for i, b := range raw {
		if err := c.WriteBody([]byte{b}, i == len(raw)-1); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.take(1)[0]; got != "a-key-of-some-length" {
		t.Errorf("the server read %q", got)
	}
	p.send("+OK\r\n")
	r.expect(t, 1, "+OK\r\n")
	until(t, "an idle connection", func() bool { return c.InFlight() == 0 })
	submit(t, c, r, "next")
	p.take(1)
	p.send("+next\r\n")
	r.expect(t, 2, "+OK\r\n+next\r\n")
}

// A body that was cut short was not sent; one whose last byte was taken is unknown.
func TestBodyCut(t *testing.T) {
	raw := get("key")
	for _, whole := range []bool{false, true} {
		c, p := connect(t, Options{})
		r := newRecorder()
		if err := c.OpenBody(r); err != nil {
			t.Fatal(err)
		}
		n := len(raw)
		want := "?"
		if !whole {
			n, want = n-1, "!"
		}
		if err := c.WriteBody(raw[:n], whole); err != nil {
			t.Fatal(err)
		}
		p.nc.Close()
		r.expect(t, 1, want)
		await(t, c.Done(), "the end")
		if err := c.WriteBody(raw, true); !errors.Is(err, ErrDead) {
			t.Errorf("writing to a dead connection: %v", err)
		}
		if err := c.OpenBody(r); !errors.Is(err, ErrDead) {
			t.Errorf("a body on a dead connection: %v", err)
		}
		if err := c.SetRaw(r); !errors.Is(err, ErrDead) {
			t.Errorf("a dead connection became raw: %v", err)
		}
		if err := c.SetOwner(r); !errors.Is(err, ErrDead) {
			t.Errorf("a dead connection got an owner: %v", err)
		}
	}
}

// A raw connection passes bytes that are nobody's frames, both ways, at its client's
// pace, and tells its sink of the end.
func TestRaw(t *testing.T) {
	c, p := connect(t, Options{})
	pc := newPacer()
	r := newRecorder()
	r.pace = pc.pace
	if err := c.SetRaw(r); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteBody([]byte("not RESP\r\n"), false); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 10)
	p.nc.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(p.nc, got); err != nil || string(got) != "not RESP\r\n" {
		t.Fatalf("the server read %q, %v", got, err)
	}
	p.send("neither\r\n")
	<-pc.asked
	if r.text() != "neither\r\n" {
		t.Errorf("the client got %q", r.text())
	}
	p.send("later\r\n")
	if r.text() != "neither\r\n" {
		t.Error("bytes passed a client that takes nothing")
	}
	pc.release <- true
	<-pc.asked
	if r.text() != "neither\r\nlater\r\n" {
		t.Errorf("the client got %q", r.text())
	}
	pc.release <- false // the client is gone
	await(t, c.Done(), "the end")
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.gone || r.ended != 0 {
		t.Errorf("told of the end: %v, of %d commands", r.gone, r.ended)
	}
}

// The end of a raw connection that comes with its last bytes is noticed at once.
func TestRawEndBehindBytes(t *testing.T) {
	for range 100 {
		c, p := connect(t, Options{})
		r := newRecorder()
		if err := c.SetRaw(r); err != nil {
			t.Fatal(err)
		}
		p.send("+OK\r\n")
		p.nc.Close()
		await(t, c.Done(), "the end")
		if r.text() != "+OK\r\n" {
			t.Fatalf("got %q", r.text())
		}
	}
}

// An owner is told of the end even if it waits for nothing; one that gave the
// connection up is not.
func TestOwnerIsTold(t *testing.T) {
	for _, kept := range []bool{true, false} {
		c, p := connect(t, Options{})
		r := newRecorder()
		if err := c.SetOwner(r); err != nil {
			t.Fatal(err)
		}
		if !kept {
			if err := c.SetOwner(nil); err != nil {
				t.Fatal(err)
			}
		}
		p.nc.Close()
		await(t, c.Done(), "the end")
		r.mu.Lock()
		if r.gone != kept {
			t.Errorf("an owner (kept: %v) was told: %v", kept, r.gone)
		}
		r.mu.Unlock()
	}
}

// After CloseWrite the server reads to the end, and its last reply still arrives.
func TestCloseWrite(t *testing.T) {
	c, p := connect(t, Options{})
	r := newRecorder()
	submit(t, c, r, "a")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	p.take(1)
	if _, err := p.read(1); !errors.Is(err, io.EOF) {
		t.Errorf("the server read %v", err)
	}
	p.send("+last\r\n")
	r.expect(t, 1, "+last\r\n")
}

// lingering is a connection whose writes return later than their bytes arrive.
type lingering struct {
	net.Conn
	held chan struct{}
}

func (l *lingering) Write(b []byte) (int, error) {
	n, err := l.Conn.Write(b)
	<-l.held
	return n, err
}

// The reply to a body may be there, and the connection with its next user, before the
// write of its last bytes has returned. What that user sends must not be left lying,
// nor must his body be taken for the one before.
func TestBodyAnsweredBeforeItsWriteReturns(t *testing.T) {
	for _, next := range []string{"command", "body"} {
		near, far := socketpair(t)
		slow := &lingering{near, make(chan struct{})}
		c := NewConn(slow, Options{})
		p := &peer{t: t, nc: far, scan: newScanner()}
		r := newRecorder()
		if err := c.OpenBody(r); err != nil {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		writers.Go(func() { _ = c.WriteBody(get("first"), true) })
		p.take(1)
		p.send("+first\r\n")
		r.expect(t, 1, "+first\r\n")
		if next == "command" {
			submit(t, c, r, "next")
		} else {
			writers.Go(func() {
				if c.OpenBody(r) == nil {
					_ = c.WriteBody(get("next"), false)
				}
			})
		}
		close(slow.held)
		if got := p.take(1)[0]; got != "next" {
			t.Errorf("the server read %q", got)
		}
		writers.Wait()
		if next == "command" {
			p.send("+next\r\n")
			r.expect(t, 2, "+first\r\n+next\r\n")
		} else { // its last byte is not known to be the last
			c.Close()
			r.expect(t, 2, "+first\r\n!")
		}
		c.Close()
		await(t, c.Done(), "the end")
	}
}

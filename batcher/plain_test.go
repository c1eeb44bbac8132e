package batcher

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/resp"
)

// ledger is a sink that notes how its commands ended.
type ledger struct {
	replies strings.Builder
	ends    []string // a word for each command
	ended   chan struct{}
	want    int
}

func newLedger(want int) *ledger { return &ledger{want: want, ended: make(chan struct{})} }

func (l *ledger) note(n int, word string) {
	for range n {
		if l.ends = append(l.ends, word); len(l.ends) == l.want {
			close(l.ended)
		}
	}
}

func (l *ledger) Reply(b []byte, done, _ int) { l.replies.Write(b); l.note(done, "reply") }
func (l *ledger) Flush()                      {}
func (l *ledger) Fail(n int, err error) {
	word := "unknown"
	if errors.Is(err, ErrNotSent) {
		word = "not sent"
	}
	l.note(n, word)
}
func (l *ledger) Pace(int64, time.Duration) bool { return true }

func (l *ledger) await(t *testing.T) {
	t.Helper()
	select {
	case <-l.ended:
	case <-time.After(10 * time.Second):
		t.Fatal("not every command ended")
	}
}

// tornConn has no descriptor and accepts so many bytes, then fails.
type tornConn struct {
	net.Conn
	accept int
}

func (c *tornConn) Write(b []byte) (int, error) {
	n := min(len(b), c.accept)
	c.accept -= n
	if n < len(b) {
		return n, errors.New("torn")
	}
	return n, nil
}

func TestTornWrite(t *testing.T) {
	first := resp.AppendCommand(nil, "INCR", "a")
	second := resp.AppendCommand(nil, "INCR", "b")
	both := append(append([]byte(nil), first...), second...)
	for _, tt := range []struct {
		opaque bool
		accept int
		want   string
	}{
		{false, 0, "not sent,not sent"},
		{false, len(first) + 3, "unknown,not sent"},
		{false, len(both) - 1, "unknown,not sent"},
		{true, 0, "unknown,unknown"},
		{true, len(first) + 3, "unknown,unknown"},
	} {
		t.Run(fmt.Sprintf("opaque %v, %d bytes", tt.opaque, tt.accept), func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			c := NewConn(&tornConn{near, tt.accept}, Options{Opaque: tt.opaque})
			l := newLedger(2)
			if err := c.Submit(l, nil, both, 2); err != nil {
				t.Fatal(err)
			}
			l.await(t)
			if got := strings.Join(l.ends, ","); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			<-c.Done()
		})
	}
}

// A streamed command is not sent until the write of its last byte is attempted, and
// from then on unknown where writes tell nothing.
func TestTornBody(t *testing.T) {
	raw := resp.AppendCommand(nil, "SET", "k", strings.Repeat("x", 1000))
	for _, tt := range []struct {
		opaque bool
		accept int
		want   string
	}{
		{false, 400, "not sent"},
		{false, len(raw) - 1, "not sent"},
		{true, 400, "not sent"},
		{true, 600, "unknown"},
		{true, len(raw) - 1, "unknown"},
	} {
		t.Run(fmt.Sprintf("opaque %v, %d bytes", tt.opaque, tt.accept), func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			c := NewConn(&tornConn{near, tt.accept}, Options{Opaque: tt.opaque})
			l := newLedger(1)
			if err := c.OpenBody(l); err != nil {
				t.Fatal(err)
			}
			if c.WriteBody(raw[:500], false) == nil && c.WriteBody(raw[500:], true) == nil {
				t.Fatal("the write did not fail")
			}
			l.await(t)
			if l.ends[0] != tt.want {
				t.Errorf("got %s, want %s", l.ends[0], tt.want)
			}
			<-c.Done()
		})
	}
}

// Replies larger than the small buffer, and of exactly its size, arrive whole.
func TestReadPlainSizes(t *testing.T) {
	near, far := net.Pipe()
	c := NewConn(near, Options{})
	defer c.Close()
	var want strings.Builder
	sizes := []int{1, plainChunk - 9, plainChunk, 3 * readChunk, 10, plainChunk, 1}
	l := newLedger(len(sizes))
	served := make(chan error, 1)
	go func() {
		served <- func() error {
			buf := make([]byte, 1024)
			for _, n := range sizes {
				if _, err := far.Read(buf); err != nil {
					return err
				}
				if _, err := fmt.Fprintf(far, "$%d\r\n%s\r\n", n, strings.Repeat("x", n)); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	for _, n := range sizes {
		fmt.Fprintf(&want, "$%d\r\n%s\r\n", n, strings.Repeat("x", n))
		before := c.InFlight()
		if err := c.Submit(l, nil, resp.AppendCommand(nil, "GET", "k"), 1); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, c, before)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	l.await(t)
	if l.replies.String() != want.String() {
		t.Errorf("%d bytes of replies, want %d", l.replies.Len(), want.Len())
	}
}

// awaitIdle waits until no more than n commands are in flight.
func awaitIdle(t *testing.T, c *Conn, n int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	timeout := time.After(10 * time.Second)
	for c.InFlight() > n {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal("no reply")
		}
	}
}

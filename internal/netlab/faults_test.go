package netlab

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// silentFor is how long a test watches that nothing arrives.
const silentFor = 30 * time.Millisecond

// expectSilence fails if c brings a byte or an end within silentFor.
func expectSilence(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(silentFor))
	n, err := c.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d, %v instead of nothing", n, err)
	}
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
}

// faulty opens a link to an echo server and a connection that works.
func faulty(t *testing.T, delay time.Duration) (*Link, net.Conn) {
	t.Helper()
	l := startLink(t, Options{Upstream: serve(t, echo), Delay: delay})
	c := dial(t, l.Addr())
	ask(t, c, "works")
	return l, c
}

func TestCut(t *testing.T) {
	l, c := faulty(t, 0)
	l.Cut()
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read %v", err)
	}
	ask(t, dial(t, l.Addr()), "a new one works")
}

func TestReset(t *testing.T) {
	l, c := faulty(t, 0)
	l.Reset()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %v", err)
	}
}

// A sender that aborts is passed on as an abort.
func TestResetTravels(t *testing.T) {
	ended := make(chan error, 1)
	l := startLink(t, Options{Delay: time.Millisecond, Upstream: serve(t, func(c net.Conn) {
		_, err := io.Copy(c, c)
		ended <- err
	})})
	c := dial(t, l.Addr())
	ask(t, c, "works")
	reset(c)
	if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("upstream read %v", err)
	}
}

func TestStall(t *testing.T) {
	for _, d := range []Dir{ToUpstream, ToClient} {
		t.Run(d.String(), func(t *testing.T) {
			l, c := faulty(t, time.Millisecond)
			l.Stall(d)
			l.Stall(d)
			if _, err := io.WriteString(c, "later"); err != nil {
				t.Fatal(err)
			}
			expectSilence(t, c)
			other := dial(t, l.Addr())
			_, _ = io.WriteString(other, "also")
			expectSilence(t, other)
			l.Resume(d)
			l.Resume(d)
			if got := read(t, c, 5); got != "later" {
				t.Errorf("got %q", got)
			}
			read(t, other, 4)
		})
	}
}

// A stalled link takes no more from the sender than the kernels' buffers hold.
func TestStallPushesBack(t *testing.T) {
	l, c := faulty(t, 0)
	l.Stall(ToUpstream)
	_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := c.Write(make([]byte, 64<<20)); err == nil {
		t.Errorf("all of %d bytes were taken", n)
	}
	if n := l.Stats().Arrived[ToUpstream]; n > 1<<20 {
		t.Errorf("the link took %d bytes", n)
	}
	l.Cut() // must end although both sides are held up
}

func TestRefuse(t *testing.T) {
	l, c := faulty(t, 0)
	for range 2 {
		if err := l.Refuse(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := net.Dial("tcp", l.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial %v", err)
	}
	ask(t, c, "still works")
	for range 2 {
		if err := l.Admit(); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, dial(t, l.Addr()), "a new one works")
}

func TestDrop(t *testing.T) {
	l, c := faulty(t, 0)
	l.Drop(ToUpstream, true)
	if _, err := io.WriteString(c, "lost"); err != nil {
		t.Fatal(err)
	}
	expectSilence(t, c)
	l.Drop(ToUpstream, false)
	if got := ask(t, c, "found"); got != "found" {
		t.Errorf("got %q", got)
	}
	if s := l.Stats(); s.Arrived[ToUpstream]-s.Delivered[ToUpstream] != 4 {
		t.Errorf("%+v", s)
	}
}

// Behind a dropping link the end of the stream is not seen either.
func TestDropHidesTheEnd(t *testing.T) {
	leave := make(chan struct{})
	l := startLink(t, Options{Upstream: serve(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 1))
		<-leave
	})})
	c := dial(t, l.Addr())
	_, _ = io.WriteString(c, "x")
	awaitStats(t, l, func(s Stats) bool { return s.Delivered[ToUpstream] == 1 })
	l.Drop(ToClient, true)
	close(leave)
	expectSilence(t, c)
}

func TestSplitEvery(t *testing.T) {
	got := make(chan []int, 1)
	const text = "0123456789"
	l := startLink(t, Options{Upstream: serve(t, func(c net.Conn) {
		var sizes []int
		buf := make([]byte, 64)
		for total := 0; total < len(text); {
			n, err := c.Read(buf)
			if err != nil {
				break
			}
			sizes, total = append(sizes, n), total+n
		}
		got <- sizes
		_, _ = io.WriteString(c, text)
	})})
	l.SplitEvery(3)
	c := dial(t, l.Addr())
	if back := ask(t, c, text); back != text {
		t.Errorf("got %q", back)
	}
	// How many reads it takes is the receiver's luck; the first is at most 3 if it
	// was waiting.
	t.Logf("read as %v", <-got)
	l.SplitEvery(0)
}

func TestHalfClose(t *testing.T) {
	upstreamEnd := make(chan string, 1)
	l := startLink(t, Options{Delay: time.Millisecond, Upstream: serve(t, func(c net.Conn) {
		data, _ := io.ReadAll(c)
		upstreamEnd <- string(data)
		_, _ = io.WriteString(c, "still here")
	})})
	c := dial(t, l.Addr())
	_, _ = io.WriteString(c, "before")
	awaitStats(t, l, func(s Stats) bool { return s.Arrived[ToUpstream] == 6 })
	l.HalfClose(ToUpstream)
	_, _ = io.WriteString(c, "after")
	if got := <-upstreamEnd; got != "before" {
		t.Errorf("upstream read %q", got)
	}
	if got := read(t, c, 10); got != "still here" {
		t.Errorf("got %q", got)
	}
}

func TestCutAfter(t *testing.T) {
	for _, d := range []Dir{ToUpstream, ToClient} {
		for _, n := range []int{0, 1, 3, 10} {
			l, c := faulty(t, time.Millisecond)
			l.CutAfter(d, int64(n))
			if _, err := io.WriteString(c, "0123456789abcdef"); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(c)
			if err != nil {
				t.Errorf("%v after %d: %v", d, n, err)
			}
			// Upstream's echo of the last bytes may or may not outrun the cut.
			if d == ToClient && string(got) != "0123456789"[:n] || d == ToUpstream && !strings.HasPrefix("0123456789"[:n], string(got)) {
				t.Errorf("%v after %d: read %q", d, n, got)
			}
			if delivered := l.Stats().Delivered[d] - int64(len("works")); delivered != int64(n) {
				t.Errorf("%v after %d: delivered %d", d, n, delivered)
			}
			ask(t, dial(t, l.Addr()), "acts once, so a new one works")
		}
	}
}

func TestCutAfterCutsOnlyItsConnection(t *testing.T) {
	l, first := faulty(t, 0)
	second := dial(t, l.Addr())
	l.CutAfter(ToUpstream, 8)
	ask(t, first, "1234")
	_, _ = io.WriteString(second, "5678")
	if _, err := io.ReadAll(second); err != nil {
		t.Error(err)
	}
	ask(t, first, "works")
	l.CutAfter(ToUpstream, 4)
	l.CutAfter(ToUpstream, -1)
	ask(t, first, "disarmed")
}

func TestCorrupt(t *testing.T) {
	l, c := faulty(t, 0)
	l.Corrupt(ToClient, func(chunk []byte) { chunk[0] ^= 1 })
	if got := ask(t, c, "0"); got != "1" {
		t.Errorf("got %q", got)
	}
	l.Corrupt(ToClient, nil)
	if got := ask(t, c, "0"); got != "0" {
		t.Errorf("got %q", got)
	}
}

// Whatever is going on, Close ends it.
func TestCloseUnderLoad(t *testing.T) {
	l, _ := faulty(t, 5*time.Millisecond)
	l.Stall(ToClient)
	for range 20 {
		c := dial(t, l.Addr())
		go func() { _, _ = c.Write(make([]byte, 4<<20)) }()
	}
	awaitStats(t, l, func(s Stats) bool { return s.Open == 21 })
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if s := l.Stats(); s.Open != 0 {
		t.Errorf("%+v", s)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Admit(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr()); err == nil {
		t.Error("a closed link accepts")
	}
}

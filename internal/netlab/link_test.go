package netlab

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startLink opens a link to addr and closes it when the test ends.
func startLink(t testing.TB, o Options) *Link {
	t.Helper()
	l, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// serve accepts connections on a free address and hands each to handle.
func serve(t testing.TB, handle func(c net.Conn)) string {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := front.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				handle(c)
			}()
		}
	}()
	t.Cleanup(func() {
		_ = front.Close()
		<-done
	})
	return front.Addr().String()
}

func echo(c net.Conn) { _, _ = io.Copy(c, c) }

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial(network(addr), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// ask sends s and reads as many bytes back.
func ask(t testing.TB, c net.Conn, s string) string {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
	return read(t, c, len(s))
}

func read(t testing.TB, c net.Conn, n int) string {
	t.Helper()
	buf := make([]byte, n)
	if _, err := io.ReadFull(c, buf); err != nil {
		t.Fatal(err)
	}
	return string(buf)
}

func TestForward(t *testing.T) {
	l := startLink(t, Options{Upstream: serve(t, echo)})
	for range 3 {
		c := dial(t, l.Addr())
		if got := ask(t, c, "hello"); got != "hello" {
			t.Errorf("got %q", got)
		}
	}
	s := l.Stats()
	if s.Accepted != 3 || s.Open != 3 || s.Arrived[ToUpstream] != 15 || s.Delivered[ToClient] != 15 {
		t.Errorf("%+v", s)
	}
}

func TestUnixSockets(t *testing.T) {
	dir := t.TempDir()
	inner := startLink(t, Options{Upstream: serve(t, echo), Listen: filepath.Join(dir, "i")})
	outer := startLink(t, Options{Upstream: inner.Addr(), Listen: filepath.Join(dir, "o")})
	if got := ask(t, dial(t, outer.Addr()), "hello"); got != "hello" {
		t.Errorf("got %q", got)
	}
	if err := outer.Refuse(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("unix", filepath.Join(dir, "o")); err == nil {
		t.Error("a refusing link accepts")
	}
	if err := outer.Admit(); err != nil {
		t.Error(err)
	}
	ask(t, dial(t, outer.Addr()), "hello")
}

// Each way takes the delay; a hundred pipelined messages take it once.
func TestDelay(t *testing.T) {
	const delay = 14 * time.Millisecond
	l := startLink(t, Options{Upstream: serve(t, echo), Delay: delay})
	c := dial(t, l.Addr())
	ask(t, c, "x")
	var took []time.Duration
	for range 20 {
		start := time.Now()
		ask(t, c, "hello")
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	t.Logf("round trip over 2 x %v: min %v, median %v, max %v", delay, took[0], took[10], took[19])
	if took[0] < 2*delay {
		t.Errorf("a round trip took only %v", took[0])
	}
	if took[0] > 2*delay+6*time.Millisecond { // the best of 20, see fastest
		t.Errorf("the fastest round trip took %v", took[0])
	}
	if d := fastest(5, func() {
		go func() {
			for range 100 {
				_, _ = io.WriteString(c, "hello")
			}
		}()
		read(t, c, 500)
	}); d > 20*delay {
		t.Errorf("100 pipelined messages took %v", d)
	}
	l.SetDelay(0)
	if d := fastest(10, func() { ask(t, c, "hello") }); d > delay {
		t.Errorf("without delay a round trip took %v", d)
	}
}

// fastest runs f n times: the best of them is what the machine's other work
// disturbed least.
func fastest(n int, f func()) time.Duration {
	best := time.Hour
	for range n {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best
}

// A change of the delay never lets later bytes pass earlier ones, and what
// passes is what was sent.
func TestOrderUnderChangingDelay(t *testing.T) {
	l := startLink(t, Options{Upstream: serve(t, echo), Delay: 5 * time.Millisecond})
	c := dial(t, l.Addr())
	data := make([]byte, 4<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(data)
	go func() {
		for i := 0; i < len(data); {
			n := min(rand.IntN(90000)+1, len(data)-i)
			l.SetDelay(time.Duration(rand.IntN(5)) * time.Millisecond)
			_, _ = c.Write(data[i : i+n])
			i += n
		}
	}()
	got := make([]byte, len(data))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%v, or other bytes than were sent", err)
	}
}

// The end of the stream is delayed like any byte and closes one direction only.
func TestEndOfStream(t *testing.T) {
	summed := make(chan [32]byte, 1)
	l := startLink(t, Options{Delay: 10 * time.Millisecond, Upstream: serve(t, func(c net.Conn) {
		data, _ := io.ReadAll(c)
		summed <- sha256.Sum256(data)
		_, _ = io.WriteString(c, "bye")
	})})
	c := dial(t, l.Addr())
	data := bytes.Repeat([]byte("0123456789"), 100000)
	start := time.Now()
	if _, err := c.Write(data); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	if err != nil || string(answer) != "bye" || <-summed != sha256.Sum256(data) {
		t.Errorf("answer %q, %v", answer, err)
	}
	if d := time.Since(start); d < 20*time.Millisecond {
		t.Errorf("both ends of the stream arrived after %v", d)
	}
	awaitStats(t, l, func(s Stats) bool { return s.Open == 0 })
}

func awaitStats(t testing.TB, l *Link, ok func(Stats) bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(l.Stats()); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("still %+v", l.Stats())
		}
	}
}

func TestUpstreamAway(t *testing.T) {
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := front.Addr().String()
	_ = front.Close()
	l := startLink(t, Options{Upstream: addr})
	c, err := net.Dial("tcp", l.Addr()) // may see the reset already
	if err == nil {
		_, err = c.Read(make([]byte, 1))
		_ = c.Close()
	}
	if err == nil {
		t.Error("no error without upstream")
	}
	awaitStats(t, l, func(s Stats) bool { return s.Failed == 1 && s.Open == 0 })
}

func TestStartFails(t *testing.T) {
	if _, err := Start(Options{Listen: "192.0.2.1:1"}); err == nil || !strings.Contains(err.Error(), "netlab") {
		t.Errorf("error %v", err)
	}
}

func TestDirString(t *testing.T) {
	if ToUpstream.String() != "to upstream" || ToClient.String() != "to client" {
		t.Error("directions are not named")
	}
}

// Throughput must not depend on the delay.
func BenchmarkThroughput(b *testing.B) {
	for _, delay := range []time.Duration{0, 14 * time.Millisecond} {
		b.Run(delay.String(), func(b *testing.B) {
			const size = 1 << 20
			l := startLink(b, Options{Delay: delay, Upstream: serve(b, func(c net.Conn) {
				_, _ = io.Copy(io.Discard, c)
				_, _ = c.Write([]byte("."))
			})})
			c := dial(b, l.Addr())
			data := make([]byte, size)
			b.SetBytes(size)
			for b.Loop() {
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				if _, err := c.Write(data); err != nil {
					b.Fatal(err)
				}
			}
			_ = c.(*net.TCPConn).CloseWrite()
			if _, err := io.ReadAll(c); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// A link that is led elsewhere takes new connections there, and leaves the open ones alone.
func TestSetUpstream(t *testing.T) {
	say := func(word string) string {
		return serve(t, func(c net.Conn) {
			if _, err := io.ReadFull(c, make([]byte, 1)); err == nil {
				_, _ = io.WriteString(c, word)
			}
		})
	}
	l := startLink(t, Options{Upstream: say("old")})
	before := dial(t, l.Addr())
	for l.Stats().Open == 0 {
		runtime.Gosched()
	}
	l.SetUpstream(say("new"))
	for c, want := range map[net.Conn]string{before: "old", dial(t, l.Addr()): "new"} {
		if _, err := c.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

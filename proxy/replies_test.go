package proxy

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"streamproxy/batcher"
)

// bare returns a session that nobody reads for, and its client's end. The test plays
// the sources of its replies.
func bare(t *testing.T, p *testProxy) (*session, *net.UnixConn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]net.Conn, len(fds))
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "socketpair")
		ends[i], err = net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	s := newSession(p.Proxy, ends[0])
	t.Cleanup(func() {
		s.abort()
		ends[0].Close()
		ends[1].Close()
		p.leaveHub(s.hub)
	})
	return s, ends[1].(*net.UnixConn)
}

// received reads n bytes from a client's end.
func received(t *testing.T, nc net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	nc.SetReadDeadline(time.Now().Add(patience))
	if k, err := io.ReadFull(nc, b); err != nil {
		t.Fatalf("got %.200q, %v", b[:k], err)
	}
	return string(b)
}

// rest reads a client's end to its end.
func rest(t *testing.T, nc net.Conn) string {
	t.Helper()
	nc.SetReadDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(nc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// book lists a segment of n commands as the session's reader does.
func book(s *session, g *segment, n int) *segment {
	g.s, g.left = s, n
	s.mu.Lock()
	s.list(g)
	s.outstanding += n
	s.mu.Unlock()
	return g
}

// Three sources and two local answers, in every order in which their replies can come:
// the client sees the order of its commands.
func TestEveryInterleaving(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	const sources, each = 3, 2
	var order []int
	var permute func(counts [sources]int)
	tried := 0
	permute = func(counts [sources]int) {
		if len(order) == sources*each {
			tried++
			s, client := bare(t, p)
			var want strings.Builder
			segments := make([]*segment, sources)
			for i := range segments {
				segments[i] = book(s, &segment{}, each)
				s.answer([]byte(fmt.Sprintf(":%d\r\n", i)))
				fmt.Fprintf(&want, "+%d.0\r\n+%d.1\r\n:%d\r\n", i, i, i)
			}
			sent := [sources]int{}
			for _, i := range order {
				segments[i].Reply([]byte(fmt.Sprintf("+%d.%d\r\n", i, sent[i])), 1, 0)
				sent[i]++
				segments[i].Flush()
			}
			if got := received(t, client, want.Len()); got != want.String() {
				t.Errorf("order %v: got %q", order, got)
			}
			if s.head != nil || s.tail != nil || s.outstanding != 0 {
				t.Errorf("order %v: something is still listed", order)
			}
			return
		}
		for i := range counts {
			if counts[i] < each {
				counts[i]++
				order = append(order, i)
				permute(counts)
				order = order[:len(order)-1]
				counts[i]--
			}
		}
	}
	permute([sources]int{})
	if tried != 90 {
		t.Errorf("%d orders tried", tried)
	}
}

// Random scripts over many segments: replies in pieces of any size, failures in the
// middle of a reply, rewritten replies. Order and framing hold.
func TestRandomInterleavings(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s, client := bare(t, p)
		var want strings.Builder
		type source struct {
			g      *segment
			stream string
			ends   []int // where its replies end
			at     int
			fails  bool
		}
		var sources []*source
		for i := range 2 + rnd.IntN(4) {
			src := &source{g: &segment{}}
			n := 1 + rnd.IntN(3)
			if rnd.IntN(4) == 0 {
				n = 1
				src.g.rewrite = func(b []byte) []byte { return []byte("<" + string(b) + ">") }
			}
			for k := range n {
				src.stream += bulkReply(strings.Repeat("x", rnd.IntN(20)) + fmt.Sprint(i, k))
				src.ends = append(src.ends, len(src.stream))
			}
			src.fails = rnd.IntN(3) == 0
			switch {
			case src.fails: // after some of its replies, perhaps within one
				src.at = rnd.IntN(len(src.stream))
				complete := 0
				for _, end := range src.ends {
					if end <= src.at {
						complete = end
					}
				}
				text := src.stream[:complete]
				lost := n - countUpTo(src.ends, src.at)
				text += strings.Repeat(string(replyUnknown), lost)
				if src.g.rewrite != nil {
					text = "<" + text + ">"
				}
				want.WriteString(text)
			case src.g.rewrite != nil:
				want.WriteString("<" + src.stream + ">")
			default:
				want.WriteString(src.stream)
			}
			book(s, src.g, n)
			sources = append(sources, src)
			if rnd.IntN(2) == 0 {
				s.answer([]byte(":7\r\n"))
				want.WriteString(":7\r\n")
			}
		}
		position := make([]int, len(sources))
		for remaining := len(sources); remaining > 0; {
			i := rnd.IntN(len(sources))
			src := sources[i]
			end := len(src.stream)
			if src.fails {
				end = src.at
			}
			switch pos := position[i]; {
			case pos < 0:
			case pos == end:
				if src.fails {
					src.g.Fail(len(src.ends)-countUpTo(src.ends, end), batcher.ErrUnknown)
				}
				position[i] = -1
				remaining--
			default:
				next := pos + 1 + rnd.IntN(end-pos)
				done := countUpTo(src.ends, next) - countUpTo(src.ends, pos)
				start := 0
				for _, e := range src.ends {
					if e <= next {
						start = e
					}
				}
				src.g.Reply([]byte(src.stream[pos:next]), done, next-start)
				position[i] = next
			}
			src.g.Flush()
		}
		if got := received(t, client, want.Len()); got != want.String() {
			t.Fatalf("seed %d: got %q, want %q", seed, got, want.String())
		}
	}
}

func countUpTo(ends []int, at int) (n int) {
	for _, e := range ends {
		if e <= at {
			n++
		}
	}
	return n
}

// A reply that has begun to leave cannot be replaced by an error: the connection ends,
// and not a byte follows what was sent.
func TestTornReplyEnds(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	g := book(s, &segment{}, 2)
	s.answer([]byte(":1\r\n"))
	head := fmt.Sprintf("$%d\r\n", 3*holdBack)
	part := head + strings.Repeat("x", holdBack+1)
	g.Reply([]byte(part), 0, len(part))
	g.Flush()
	got := received(t, client, len(part))
	g.Fail(2, batcher.ErrUnknown)
	s.answer([]byte(":2\r\n"))
	g.Flush()
	if got += rest(t, client); got != part {
		t.Errorf("behind the torn reply: %q", got[len(part):])
	}
	if !s.closed {
		t.Error("the session goes on")
	}
}

// An incomplete reply of moderate size is kept back, so that an error can take its
// place; what stood before it leaves at once.
func TestHoldBack(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	g := book(s, &segment{}, 3)
	part := fmt.Sprintf("$%d\r\n%s", holdBack, strings.Repeat("x", holdBack-100))
	g.Reply([]byte("+first\r\n"+part), 1, len(part))
	g.Flush()
	if got := received(t, client, 8); got != "+first\r\n" {
		t.Errorf("got %q", got)
	}
	client.SetReadDeadline(past)
	if n, err := client.Read(make([]byte, 1)); n != 0 {
		t.Errorf("a part of the second reply left: %v", err)
	}
	g.Fail(1, batcher.ErrUnknown)
	g.Fail(1, batcher.ErrNotSent)
	g.Flush()
	want := string(replyUnknown) + string(replyNotSent)
	if got := received(t, client, len(want)); got != want {
		t.Errorf("got %.200q", got)
	}
}

// Failures poison the rest of the pipeline, and the end of a segment is told once.
func TestFailureIsTold(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	var told []string
	g := &segment{done: func(prefix []byte, err error) { told = append(told, fmt.Sprint(string(prefix), err)) }}
	book(s, g, 2)
	g.Reply([]byte("+a\r\n"), 1, 0)
	if s.poisoned.Load() || len(told) != 0 {
		t.Error("a reply counts as a failure or as the end")
	}
	g.Fail(1, batcher.ErrNotSent)
	if !s.poisoned.Load() {
		t.Error("the rest of the pipeline would run")
	}
	if want := []string{"command not sent"}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	g.Flush()
	want := "+a\r\n" + string(replyNotSent)
	if got := received(t, client, len(want)); got != want {
		t.Errorf("got %q", got)
	}
}

// A mute segment fails without a word, because something else is said in its place.
func TestMute(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	g := book(s, &segment{mute: true}, 1)
	s.answer([]byte("-ERR something else\r\n"))
	g.Fail(1, batcher.ErrUnknown)
	g.Flush()
	if got := received(t, client, 21); got != "-ERR something else\r\n" {
		t.Errorf("got %q", got)
	}
}

// The beginning of a reply is shown to whoever asked, however it is cut.
func TestPrefix(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	var prefix string
	g := book(s, &segment{done: func(b []byte, _ error) { prefix = string(b) }}, 1)
	reply := bulkReply(strings.Repeat("y", 100))
	var tee []byte
	g.tee = &tee
	for i := range len(reply) {
		done := 0
		if i == len(reply)-1 {
			done = 1
		}
		g.Reply([]byte(reply[i:i+1]), done, (i+1)*(1-done))
	}
	g.Flush()
	received(t, client, len(reply))
	if prefix != reply[:prefixSize] || string(tee) != reply {
		t.Errorf("prefix %q, tee of %d bytes", prefix, len(tee))
	}
}

// After the end replies are dropped, and the counts still come out right.
func TestRepliesAfterTheEnd(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, _ := bare(t, p)
	g := book(s, &segment{}, 3)
	later := book(s, &segment{}, 1)
	g.Reply([]byte("$3\r\na"), 0, 5)
	s.abort()
	later.Reply([]byte("+x\r\n"), 1, 0)
	g.Reply([]byte("bc\r\n+b\r\n"), 2, 0)
	g.Fail(1, batcher.ErrUnknown)
	s.answer([]byte(":1\r\n"))
	g.Flush()
	// What was held back when the end came is given back with it.
	if s.outstanding != 0 || s.head != nil || s.out.size != 0 || len(later.parked) != 0 {
		t.Errorf("outstanding %d, %d bytes kept", s.outstanding, s.out.size)
	}
}

// Servers send what a script calls a big number without looking at it: it ends where its line
// does, and the lane goes on.
func TestBigNumberOfAScript(t *testing.T) {
	f := startFake(t)
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		return "*2\r\n(none\r\n(\r\n", args[0] == "GET" && args[1] == "big"
	})
	p := startProxy(t, f, nil)
	c, other := p.client(), p.client()
	expect(t, other, bulkReply("k"), "GET", "k")
	for range 3 {
		expect(t, c, "*2\r\n(none\r\n(\r\n", "GET", "big")
		expect(t, other, bulkReply("k"), "GET", "k")
	}
}

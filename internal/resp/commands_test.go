package resp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// goodCommands have one reading, Redis's own.
var goodCommands = []struct {
	in   string
	args []string // nil: nothing to execute
}{
	{"*1\r\n$4\r\nPING\r\n", []string{"PING"}},
	{"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\n", []string{"SET", "a", ""}},
	{"*2\r\n$4\r\nECHO\r\n$4\r\n\r\n\r\n\r\n", []string{"ECHO", "\r\n\r\n"}},
	{"*2\r\n$4\r\nECHO\r\n$10\r\n0123456789\r\n", []string{"ECHO", "0123456789"}},
	{"*1\r\n$0\r\n\r\n", []string{""}},
	{"*0\r\n", nil},
	{"*-1\r\n", nil},
	{"*-10\r\n", nil},
	{"*-9223372036854775808\r\n", nil},
	{"\r\n", nil},
	{"\n", nil},
	{" \t \r\n", nil},
	{"PING\r\n", []string{"PING"}},
	{"PING\n", []string{"PING"}},
	{"ECHO a\r\r\n", []string{"ECHO a\r"}},
	{"$4\r\n", []string{"$4"}},
}

// badCommands are refused by Redis 7 with the same text; early ones when the
// first impossible byte arrives, before Redis has seen the CR that it waits for.
var badCommands = []struct{ in, reason string }{
	{"*\r\n", "invalid multibulk length"},
	{"*01\r\n", "invalid multibulk length"},
	{"*+1\r\n", "invalid multibulk length"},
	{"*-0\r\n", "invalid multibulk length"},
	{"*1 \r\n", "invalid multibulk length"},
	{"*x\r\n", "invalid multibulk length"},
	{"*--1\r\n", "invalid multibulk length"},
	{"*1\n$4\r\nPING\r\n", "invalid multibulk length"},
	{"*2147483648\r\n", "invalid multibulk length"},
	{"*9223372036854775807\r\n", "invalid multibulk length"},
	{"*9223372036854775808\r\n", "invalid multibulk length"},
	{"*-9223372036854775809\r\n", "invalid multibulk length"},
	{"*99999999999999999999999\r\n", "invalid multibulk length"},
	{"*1\r\nPING\r\n", "expected '$', got 'P'"},
	{"*1\r\n*1\r\n", "expected '$', got '*'"},
	{"*1\r\n\r\n", "expected '$', got ' '"},
	{"*1\r\n\xff\r\n", "expected '$', got '\xff'"},
	{"*2\r\n$4\r\nPING\r\n+x\r\n", "expected '$', got '+'"},
	{"*1\r\n$\r\n", "invalid bulk length"},
	{"*1\r\n$04\r\nPING\r\n", "invalid bulk length"},
	{"*1\r\n$+4\r\nPING\r\n", "invalid bulk length"},
	{"*1\r\n$-0\r\n", "invalid bulk length"},
	{"*1\r\n$-1\r\n", "invalid bulk length"},
	{"*1\r\n$-2\r\n", "invalid bulk length"},
	{"*1\r\n$4\nPING\r\n", "invalid bulk length"},
	{"*1\r\n$536870913\r\n", "invalid bulk length"},
	{"*1\r\n$2147483645\r\n", "invalid bulk length"},
	{"*1\r\n$9223372036854775807\r\n", "invalid bulk length"},
	{"*1\r\n$9223372036854775808\r\n", "invalid bulk length"},
	{"*1\r\n$4\r\nPING\r\n*1\r\n$x\r\n", "invalid bulk length"},
}

// strictCommands are taken by Redis 7, or kept waiting, and refused here.
var strictCommands = []struct{ in, reason string }{
	{"*1\rX$4\r\nPING\r\n", "invalid multibulk length"},
	{"*1\r\n$4\rXPING\r\n", "invalid bulk length"},
	{"*1\r\n$4\r\nPINGXY", "invalid bulk length"},
	{"*1\r\n$4\r\nPING\n\n", "invalid bulk length"},
	{"*1\r\n$4\r\nPING\r\r", "invalid bulk length"},
	{"*1\n", "invalid multibulk length"},
	{"PI\x00NG\r\n", "too big inline request"},
}

// longCommands pass the size of a line, by one byte.
var longCommands = []struct{ in, reason string }{
	{strings.Repeat("x", 65537), "too big inline request"},
	{"*" + strings.Repeat("1", 65536), "too big mbulk count string"},
	{"*1\r\n$" + strings.Repeat("1", 65536), "too big bulk count string"},
}

func commandSeeds() []string {
	var all []string
	for _, c := range goodCommands {
		all = append(all, c.in, c.in+c.in)
	}
	for _, c := range badCommands {
		all = append(all, c.in)
	}
	for _, c := range strictCommands {
		all = append(all, c.in)
	}
	return append(all, "*13\r\n", "*12\r\n$41\r\n", "*1\r\n$40\r\n", "*"+strings.Repeat("1", 40), strings.Repeat("x", 40))
}

func TestCommandsAccepted(t *testing.T) {
	for _, c := range goodCommands {
		s := NewCommandScanner(DefaultLimits())
		n, done, err := s.Scan([]byte(c.in + "rest"))
		if n != len(c.in) || !done || err != nil {
			t.Errorf("%q: %d %v %v", c.in, n, done, err)
			continue
		}
		var args []string
		for _, a := range s.Args() {
			args = append(args, c.in[a.Start:a.End])
		}
		if fmt.Sprintf("%q", args) != fmt.Sprintf("%q", c.args) {
			t.Errorf("%q: %q, want %q", c.in, args, c.args)
		}
	}
}

func TestCommandsRefused(t *testing.T) {
	for _, c := range append(append(badCommands, strictCommands...), longCommands...) {
		for seed := range uint64(3) {
			got := scanCommands(t, NewCommandScanner(DefaultLimits()), []byte(c.in), pieces([]byte(c.in), seed))
			if _, got, _ = strings.Cut(got, "refused "); got != fmt.Sprintf("%q", c.reason) {
				t.Errorf("%.40q seed %d: %s, want %q", c.in, seed, got, c.reason)
			}
		}
	}
}

func TestCommandSplits(t *testing.T) {
	in := []byte("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\nPING x\r\n*0\r\n\r\n*2\r\n$3\r\nGET\r\n$12\r\n0123456789ab\r\n")
	want := describeCommands(in, DefaultLimits())
	for i := range in {
		for j := i; j < len(in); j++ {
			s := NewCommandScanner(DefaultLimits())
			if got := scanCommands(t, s, in, [][]byte{in[:i], in[i:j], in[j:]}); got != want {
				t.Fatalf("cut at %d and %d:\n got %s\nwant %s", i, j, got, want)
			}
		}
	}
}

// A header alone shows how large a command will be, and costs no memory for it.
func TestDeclared(t *testing.T) {
	s := NewCommandScanner(DefaultLimits())
	s.Scan([]byte("*1000000\r\n"))
	if s.Declared() != 10+6e6 || cap(s.args) > keepSpans {
		t.Errorf("declared %d, room for %d spans", s.Declared(), cap(s.args))
	}
	s.Reset()
	s.Scan([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n"))
	if want := int64(4 + 9 + 7 + 10 + 1000000 + 2); s.Declared() != want {
		t.Errorf("declared %d, want %d", s.Declared(), want)
	}
}

func TestStopRecording(t *testing.T) {
	s := NewCommandScanner(DefaultLimits())
	s.Scan([]byte("*100002\r\n$4\r\nMSET\r\n"))
	s.StopRecording()
	arg := []byte("$1\r\nx\r\n")
	for i := range 100001 {
		_, done, err := s.Scan(arg)
		if err != nil || done != (i == 100000) {
			t.Fatalf("argument %d: %v %v", i, done, err)
		}
	}
	if len(s.Args()) != 1 || cap(s.args) > keepSpans {
		t.Errorf("%d spans in a table of %d", len(s.Args()), cap(s.args))
	}
	if s.Scan([]byte("*1\r\n$4\r\nPING\r\n")); len(s.Args()) != 1 || s.Args()[0] != (Span{8, 12}) {
		t.Errorf("the next command is not recorded: %v", s.Args())
	}
}

// The table of spans stays while a client needs it, and goes when it does not.
func TestSpansShrink(t *testing.T) {
	huge := []byte("*5000\r\n" + strings.Repeat("$0\r\n\r\n", 5000))
	s := NewCommandScanner(DefaultLimits())
	if n := testing.AllocsPerRun(10, func() { s.Scan(huge) }); n != 0 || len(s.Args()) != 5000 {
		t.Fatalf("%v allocations, %d arguments", n, len(s.Args()))
	}
	s.Scan([]byte("PING\r\n"))
	if s.Scan([]byte("PING\r\n")); cap(s.args) > keepSpans {
		t.Errorf("room for %d spans is kept after small commands", cap(s.args))
	}
	s.Scan(huge)
	if s.Reset(); cap(s.args) > keepSpans {
		t.Errorf("room for %d spans is kept after Reset", cap(s.args))
	}
}

func TestCommandAllocs(t *testing.T) {
	in := []byte("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nhello\r\nPING\r\n")
	s := NewCommandScanner(DefaultLimits())
	if n := testing.AllocsPerRun(100, func() {
		for rest := in; len(rest) > 0; {
			n, _, _ := s.Scan(rest)
			rest = rest[n:]
		}
		for i := range in {
			s.Scan(in[i : i+1])
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// bestOf returns the shortest of three runs.
func bestOf(f func()) time.Duration {
	best := time.Hour
	for range 3 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best
}

// linear fails if eight times the input takes far more than eight times as long;
// rescanning from the start would take sixty-four times as long. A busy machine
// can spoil a measurement, so one good attempt of five is enough.
func linear(t *testing.T, run func(size int)) {
	t.Helper()
	const size = 1 << 15
	var one, eight time.Duration
	for range 5 {
		one, eight = bestOf(func() { run(size) }), bestOf(func() { run(8 * size) })
		if eight <= 32*one {
			return
		}
	}
	t.Errorf("%v for %d bytes, %v for eight times as many", one, size, eight)
}

func TestCommandsLinear(t *testing.T) {
	linear(t, func(size int) {
		in := []byte(fmt.Sprintf("*%d\r\n", size/7) + strings.Repeat("$1\r\nx\r\n", size/7))
		s := NewCommandScanner(DefaultLimits())
		for i := range in {
			if _, done, err := s.Scan(in[i : i+1]); err != nil || done != (i == len(in)-1) {
				t.Fatal(i, done, err)
			}
		}
	})
}

// What Empty skips are commands to which nobody answers, and behind it is the beginning of one.
func TestEmpty(t *testing.T) {
	pieces := []string{"\r\n", "\n", "*0\r\n", "*-1\r\n", "\r", "*", "*0", "*0\r", " \r\n", "PING\r\n", "*1\r\n$1\r\na\r\n"}
	random := rand.New(rand.NewPCG(1, 2))
	skipped := 0
	for range 10_000 {
		in := ""
		for range random.IntN(6) {
			in += pieces[random.IntN(len(pieces))]
		}
		end := Empty([]byte(in))
		skipped += end
		s := NewCommandScanner(DefaultLimits())
		for at := 0; at < end; {
			n, done, err := s.Scan([]byte(in[at:end]))
			if err != nil || !done || len(s.Args()) > 0 {
				t.Fatalf("%q: skips %d bytes, at %d: %v %v, %d arguments", in, end, at, done, err, len(s.Args()))
			}
			at += n
		}
	}
	if skipped < 5_000 {
		t.Errorf("skipped %d bytes in all", skipped)
	}
}

package resp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// fuzzLimits are small, so that short inputs reach them.
var fuzzLimits = Limits{MaxBulk: 40, MaxArgs: 12, MaxInline: 32}

// pieces cuts b at places that seed decides; seed 0 cuts nowhere, 1 everywhere.
func pieces(b []byte, seed uint64) [][]byte {
	if seed == 0 {
		return [][]byte{b}
	}
	var out [][]byte
	rnd := rand.New(rand.NewPCG(seed, 1))
	for len(b) > 0 {
		n := 1
		if seed > 1 {
			n = min(len(b), 1+rnd.IntN(9))
		}
		out = append(out, b[:n])
		b = b[n:]
	}
	return out
}

// scanCommands describes a stream as describeCommands does, by the scanner.
func scanCommands(t *testing.T, s *CommandScanner, in []byte, cut [][]byte) string {
	var out strings.Builder
	start, pos := 0, 0
	var least int64
	for _, p := range cut {
		for len(p) > 0 {
			n, done, err := s.Scan(p)
			if err != nil {
				fmt.Fprintf(&out, "refused %q", err.(*ProtocolError).Reason)
				if _, _, again := s.Scan(p); again != err {
					t.Fatalf("error is not sticky: %v, then %v", err, again)
				}
				return out.String()
			}
			if !done && n != len(p) {
				t.Fatalf("consumed %d of %d and wants more", n, len(p))
			}
			pos += n
			p = p[n:]
			if s.Size() != int64(pos-start) {
				t.Fatalf("Size %d after %d bytes", s.Size(), pos-start)
			}
			least = max(least, s.Declared())
			if done {
				if least != s.Size() {
					t.Fatalf("Declared up to %d of a command of %d bytes", least, s.Size())
				}
				var args []string
				for _, a := range s.Args() {
					args = append(args, string(in[start:pos][a.Start:a.End]))
				}
				fmt.Fprintf(&out, "%d %v %q\n", pos-start, s.Inline(), args)
				start, least = pos, 0
			}
		}
	}
	return out.String() + "more"
}

// scanReplies describes a stream as describeReplies does, by the scanner.
func scanReplies(t *testing.T, s *ReplyScanner, cut [][]byte) string {
	var out strings.Builder
	var size, least int64
	for _, p := range cut {
		for len(p) > 0 {
			n, done, err := s.Scan(p)
			if err != nil {
				if _, _, again := s.Scan(p); again != err {
					t.Fatalf("error is not sticky: %v, then %v", err, again)
				}
				return out.String() + "refused"
			}
			if !done && n != len(p) {
				t.Fatalf("consumed %d of %d and wants more", n, len(p))
			}
			size += int64(n)
			p = p[n:]
			if s.Size() != size {
				t.Fatalf("Size %d after %d bytes", s.Size(), size)
			}
			least = max(least, s.Announced())
			if done {
				if least != size {
					t.Fatalf("Announced up to %d of a reply of %d bytes", least, size)
				}
				fmt.Fprintf(&out, "%d %c\n", size, s.Kind())
				size, least = 0, 0
			}
		}
	}
	return out.String() + "more"
}

func FuzzCommands(f *testing.F) {
	for _, in := range commandSeeds() {
		f.Add([]byte(in), uint64(2))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		want := describeCommands(in, fuzzLimits)
		for _, seed := range []uint64{0, 1, seed} {
			s := NewCommandScanner(fuzzLimits)
			if got := scanCommands(t, s, in, pieces(in, seed)); got != want {
				t.Fatalf("seed %d of %q:\n got %s\nwant %s", seed, in, got, want)
			}
		}
	})
}

func FuzzReplies(f *testing.F) {
	for _, in := range replySeeds() {
		f.Add([]byte(in), uint64(2))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		want := describeReplies(in)
		for _, seed := range []uint64{0, 1, seed} {
			var s ReplyScanner
			if got := scanReplies(t, &s, pieces(in, seed)); got != want {
				t.Fatalf("seed %d of %q:\n got %s\nwant %s", seed, in, got, want)
			}
		}
	})
}

// FuzzInline checks the splitter against the frames it writes: what it appends is
// one canonical command whose arguments lie where the spans say.
func FuzzInline(f *testing.F) {
	for _, c := range inlineCases {
		f.Add([]byte(c.line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		out, spans, err := AppendInline([]byte("before"), []Span{{1, 2}}, line)
		if err != nil || len(spans) == 1 {
			if string(out) != "before" || len(spans) != 1 {
				t.Fatalf("%q: nothing to append, yet %q %v", line, out, spans)
			}
			return
		}
		out, spans = out[len("before"):], spans[1:]
		c, v := parseCommand(out, DefaultLimits())
		if v != whole || c.size != len(out) || len(c.args) != len(spans) {
			t.Fatalf("%q became %q %v", line, out, spans)
		}
		for i, s := range spans {
			if string(out[s.Start:s.End]) != c.args[i] {
				t.Fatalf("%q: argument %d is %q, want %q", line, i, out[s.Start:s.End], c.args[i])
			}
		}
	})
}

// FuzzParse holds the decoder to the framer: where both understand a reply, they agree
// about its end, and every part of it lies within it.
func FuzzParse(f *testing.F) {
	for _, in := range replySeeds() {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, n, err := Parse(in)
		if err != nil {
			return
		}
		if text := countText(v); text > n || n > len(in) {
			t.Fatalf("%q: %d bytes of text in %d of %d", in, text, n, len(in))
		}
		var s ReplyScanner
		if m, done, err := s.Scan(in); err == nil && done && m != n {
			t.Fatalf("%q: decoded %d bytes, framed %d", in, n, m)
		}
	})
}

// countText is the number of bytes of text in a value.
func countText(v Value) int {
	n := len(v.Text)
	for _, e := range v.Elems {
		n += countText(e)
	}
	return n
}

package resp

import (
	"strings"
	"testing"
)

var goodReplies = []string{
	"+OK\r\n", "+\r\n", "-ERR no\r\n", "-nospace\r\n", ":0\r\n", ":-12\r\n", ":+7\r\n", ":18446744073709551615\r\n",
	"+a\rb\nc\r\r\n", "+" + strings.Repeat("x", 300) + "\r\n", "+" + strings.Repeat("x\n", 40) + "\r\n",
	"$0\r\n\r\n", "$3\r\nfoo\r\n", "$4\r\n\r\n\r\n\r\n", "$-1\r\n", "$10\r\n0123456789\r\n",
	"*0\r\n", "*-1\r\n", "*2\r\n+a\r\n$1\r\nb\r\n", "*3\r\n*1\r\n:1\r\n*0\r\n*-1\r\n", "*1\r\n*1\r\n*1\r\n$-1\r\n",
	"_\r\n", ",1.5\r\n", ",inf\r\n", ",-inf\r\n", ",nan\r\n", ",1e+10\r\n", "#t\r\n", "#f\r\n",
	"(3492890328409238509324850943850943825024385\r\n", "(-1\r\n", "(\r\n", "(x 1\r\n", "*2\r\n(1.5\r\n(\n\r\n", "!9\r\nSYNTAX no\r\n", "=8\r\ntxt:text\r\n",
	"%0\r\n", "%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n:2\r\n:3\r\n", "~2\r\n:1\r\n:2\r\n", ">3\r\n+message\r\n$1\r\nc\r\n$1\r\nx\r\n",
	"|1\r\n+ttl\r\n:3600\r\n+OK\r\n", "|0\r\n:1\r\n", "|1\r\n+k\r\n|1\r\n+a\r\n+b\r\n+v\r\n*1\r\n|1\r\n+x\r\n%1\r\n:1\r\n:2\r\n$1\r\ny\r\n",
	"|1\r\n+a\r\n+b\r\n|1\r\n+c\r\n+d\r\n>1\r\n+p\r\n",
	"$?\r\n;4\r\nHell\r\n;2\r\no \r\n;0\r\n", "$?\r\n;0\r\n", "*?\r\n.\r\n", "*?\r\n:1\r\n*2\r\n:2\r\n:3\r\n.\r\n",
	"%?\r\n+a\r\n:1\r\n+b\r\n*?\r\n.\r\n.\r\n", "~?\r\n*?\r\n*?\r\n.\r\n.\r\n+x\r\n.\r\n", ">?\r\n+a\r\n.\r\n",
	"*2\r\n*?\r\n$?\r\n;1\r\nx\r\n;0\r\n.\r\n:1\r\n", "*?\r\n|1\r\n+a\r\n+b\r\n:1\r\n.\r\n", "%?\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n.\r\n",
	strings.Repeat("*?\r\n", maxStreamDepth) + strings.Repeat(".\r\n", maxStreamDepth),
}

var badReplies = []string{
	"x", "\r\n", "\x00", ".\r\n", ";0\r\n", "PONG\r\n",
	":\r\n", ":x", ":-\r\n", ":1-", ":1\rx", ": 1", ",\r\n", ",x", "#\r\n", "#x", "#tt", "_x", "_\rx",
	"$\r\n", "$-2\r\n", "$-0\r\n", "$04\r\n", "$+4", "$4x", "$1\n", "$4\rx", "$9223372036854775807\r\n", "$99999999999999999999", "$3\r\nfooX", "$3\r\nfoo\rX",
	"*-2\r\n", "*01", "*9223372036854775807\r\n", "*\r\n", "*72057594037927936\r\n", "%36028797018963969\r\n", "%-1\r\n", "~-1\r\n", ">-1\r\n", "|-1\r\n", "!-1\r\n", "=-1\r\n",
	"*2\r\n>1\r\n+p\r\n", "|1\r\n>1\r\n", "*?\r\n>1\r\n", "*1\r\n.\r\n",
	"!?\r\n", "=?\r\n", "|?\r\n", "$??", "$?1", "$1?", "$-?", "$?\r\n;?\r\n", "$?\r\n;-1\r\n", "$?\r\n$1\r\n", "$?\r\n;1\r\nxy",
	"%?\r\n+a\r\n.\r\n", "*?\r\n|1\r\n+a\r\n+b\r\n.\r\n", "*?\r\n*1\r\n.\r\n", "*?\r\n.x",
	strings.Repeat("*?\r\n", maxStreamDepth+1),
}

func replySeeds() []string {
	seeds := append([]string(nil), goodReplies...)
	seeds = append(seeds, badReplies...)
	return append(seeds, strings.Repeat("*72057594037927935\r\n", 2), "*2\r\n$3\r\nfoo\r\n")
}

// Every reply is found whole, and with another behind it, at every split, in the
// same way as the reference finds it.
func TestRepliesFramed(t *testing.T) {
	for _, reply := range goodReplies {
		in := []byte(reply + "+NEXT\r\n")
		want := describeReplies(in)
		if !strings.HasSuffix(want, "7 +\nmore") || strings.Count(want, "\n") != 2 {
			t.Fatalf("%q: the reference says %s", reply, want)
		}
		for i := range in {
			var s ReplyScanner
			if got := scanReplies(t, &s, [][]byte{in[:i], in[i:]}); got != want {
				t.Fatalf("%.60q cut at %d:\n got %s\nwant %s", in, i, got, want)
			}
		}
		for seed := range uint64(5) {
			var s ReplyScanner
			if got := scanReplies(t, &s, pieces(in, seed)); got != want {
				t.Fatalf("%.60q seed %d:\n got %s\nwant %s", in, seed, got, want)
			}
		}
	}
}

func TestRepliesRefused(t *testing.T) {
	for _, in := range badReplies {
		if want := describeReplies([]byte(in)); want != "refused" {
			t.Errorf("%.60q: the reference says %s", in, want)
		}
		for seed := range uint64(3) {
			var s ReplyScanner
			if got := scanReplies(t, &s, pieces([]byte(in), seed)); got != "refused" {
				t.Errorf("%.60q seed %d: %s", in, seed, got)
			}
			s.Reset()
			if _, done, err := s.Scan([]byte("+OK\r\n")); !done || err != nil {
				t.Errorf("%.60q: Reset leaves %v %v", in, done, err)
			}
		}
	}
}

// A cut reply is incomplete, never an error and never a shorter reply.
func TestRepliesCut(t *testing.T) {
	for _, reply := range goodReplies {
		for i := range reply {
			var s ReplyScanner
			if n, done, err := s.Scan([]byte(reply[:i])); n != i || done || err != nil {
				t.Fatalf("%.60q: %d %v %v", reply[:i], n, done, err)
			}
		}
	}
}

// The kind is that of the value behind the attributes, and known at its first byte.
func TestKind(t *testing.T) {
	var s ReplyScanner
	s.Scan([]byte("|1\r\n*1\r\n+k\r\n:1\r\n"))
	if s.Kind() != 0 {
		t.Errorf("an attribute has kind %q", s.Kind())
	}
	if s.Scan([]byte("$")); s.Kind() != '$' {
		t.Errorf("kind %q, want $", s.Kind())
	}
}

func TestReplyAllocs(t *testing.T) {
	in := []byte("+OK\r\n$64\r\n" + strings.Repeat("x", 64) + "\r\n*3\r\n:1\r\n_\r\n%?\r\n.\r\n|1\r\n+a\r\n+b\r\n,1.5\r\n")
	var s ReplyScanner
	run := func() {
		for rest := in; len(rest) > 0; {
			n, _, _ := s.Scan(rest)
			rest = rest[n:]
		}
		for i := range in {
			s.Scan(in[i : i+1])
		}
	}
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRepliesLinear(t *testing.T) {
	linear(t, func(size int) {
		in := []byte("*2\r\n+" + strings.Repeat("x\n", size/4) + "\r\n*1\r\n$" + "9" + "\r\n123456789\r\n" + strings.Repeat(":1\r\n", size/8))
		var s ReplyScanner
		for i := range in {
			if _, _, err := s.Scan(in[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
	})
}

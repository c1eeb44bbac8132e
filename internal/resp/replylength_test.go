package resp

import (
	"strings"
	"testing"
)

func TestAnnounced(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
	}{
		{"", 0},
		{"$1000000\r\n", 10 + 1000000 + 2},
		{"$1000000\r\nabc", 10 + 1000000 + 2},
		{"*1000000\r\n", 10 + 3000000},
		{"%1000\r\n", 7 + 6000},
		{"*1000\r\n$100\r\n", 13 + 102 + 999*3},
		{"|1000\r\n", 7 + 3*2001},
		{"*3\r\n:1\r\n", 8 + 6},
		{"*72057594037927935\r\n", 20 + 3*72057594037927935},
	} {
		var s ReplyScanner
		if s.Scan([]byte(c.in)); s.Announced() != c.want {
			t.Errorf("%q announces %d, want %d", c.in, s.Announced(), c.want)
		}
	}
}

// A million nested arrays cost neither stack nor memory.
func TestHostileNesting(t *testing.T) {
	in := []byte(strings.Repeat("*1\r\n", 1e6) + ":1\r\n")
	var s ReplyScanner
	if n := testing.AllocsPerRun(1, func() {
		if n, done, err := s.Scan(in); n != len(in) || !done || err != nil {
			t.Fatal(n, done, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := scanReplies(t, &s, pieces(in[len(in)/10*9/4*4:], 3)); !strings.HasSuffix(got, " *\nmore") {
		t.Error(got)
	}
}

package differential

import (
	"slices"
	"strings"
	"testing"
)

func TestScriptText(t *testing.T) {
	s := script{cuts: map[int][]int{1: {5, 77}}, ops: []op{
		{0, 1, 1, do, []string{"SET", "k", "\x00\r\n\" \xff"}},
		{0, 1, 1, inline, []string{`ECHO "a b"`}},
		{1, 2, 1, do, []string{"GET", ""}},
		{1, 3, 2, park, []string{"BLPOP", "k", "1"}},
		{1, 4, 3, collect, nil},
		{0, 5, 4, last, []string{"*x\r\n"}},
	}}
	back, err := readScript("# comment\n" + s.String())
	if err != nil {
		t.Fatal(err)
	}
	if back.String() != s.String() || !slices.EqualFunc(back.ops, s.ops, func(a, b op) bool {
		return a.conn == b.conn && a.pipe == b.pipe && a.round == b.round && a.verb == b.verb && slices.Equal(a.args, b.args)
	}) {
		t.Errorf("%s became %s", s, back)
	}
	for _, bad := range []string{"do", `do conn=0 pipe=1 round=1 "open`, "cuts x"} {
		if _, err := readScript(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestRounds(t *testing.T) {
	command := func(conn, pipe, round int) op { return op{conn, pipe, round, do, []string{"PING"}} }
	s := script{ops: []op{
		command(0, 1, 1), command(0, 1, 1), command(1, 2, 1), // two pipes beside each other
		command(0, 3, 2), command(0, 4, 2), // one connection has one pipe at a time
		{0, 5, 3, park, []string{"BLPOP", "k", "1"}}, {1, 6, 3, do, []string{"PING"}}, // parked alone
	}}
	var shape []string
	for _, round := range s.rounds() {
		text := ""
		for _, pipe := range round {
			text += strings.Repeat("x", len(pipe)) + " "
		}
		shape = append(shape, strings.TrimSpace(text))
	}
	if want := []string{"xx x", "x", "x", "x", "x"}; !slices.Equal(shape, want) {
		t.Errorf("rounds %q, want %q", shape, want)
	}
}

func TestPieces(t *testing.T) {
	s := script{cuts: map[int][]int{1: {0, 3, 1_000_003}}}
	got := s.pieces(1, "abcdef")
	if strings.Join(got, "") != "abcdef" || len(got) < 3 {
		t.Errorf("pieces %q", got)
	}
	if got := s.pieces(2, "abc"); len(got) != 1 {
		t.Errorf("a pipe without cuts in %d pieces", len(got))
	}
	if got := s.pieces(1, "a"); len(got) != 1 || got[0] != "a" {
		t.Errorf("a single byte as %q", got)
	}
}

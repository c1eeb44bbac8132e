package differential

import "testing"

func TestCompare(t *testing.T) {
	pipe := func(args ...string) []op { return []op{{0, 1, 1, do, args}} }
	out := func(p []op, end string, frames ...string) []outcome { return []outcome{{p, frames, end}} }
	get, members := pipe("GET", "k"), pipe("SMEMBERS", "k")
	tests := []struct {
		name   string
		a, b   []outcome
		differ bool
	}{
		{"equal", out(get, "", "$1\r\na\r\n"), out(get, "", "$1\r\na\r\n"), false},
		{"another value", out(get, "", "$1\r\na\r\n"), out(get, "", "$1\r\nb\r\n"), true},
		{"missing reply", out(get, "", "+a\r\n", "+b\r\n"), out(get, "", "+a\r\n"), true},
		{"one reply more", out(get, "", "+a\r\n"), out(get, "", "+a\r\n", "+a\r\n"), true},
		{"swapped", out(get, "", "+a\r\n", "+b\r\n"), out(get, "", "+b\r\n", "+a\r\n"), true},
		{"silence", out(get, "", "+a\r\n"), out(get, silent, "+a\r\n"), true},
		{"both closed", out(get, closed), out(get, closed), false},
		{"not played", out(get, ""), nil, true},
		{"order", out(members, "", "*2\r\n:1\r\n:2\r\n"), out(members, "", "*2\r\n:2\r\n:1\r\n"), false},
	}
	for _, tt := range tests {
		if d := compare(tt.a, tt.b); (d != nil) != tt.differ {
			t.Errorf("%s: %v", tt.name, d)
		}
	}
}

// A client's name is compared where it has a connection of its own, but within MULTI, and on one that
// was taken for good there.
func TestCompareNames(t *testing.T) {
	for command, differ := range map[string]bool{"GET k": true, "SUBSCRIBE c": false, "CLIENT TRACKING ON": false} {
		var direct, behind []outcome
		for i, text := range []string{"MULTI", command, "CLIENT GETNAME", "EXEC", "CLIENT GETNAME"} {
			pipe := []op{{0, i, i, do, words(text)}}
			direct = append(direct, outcome{pipe, []string{"$-1\r\n"}, ""})
			behind = append(behind, outcome{pipe, []string{"$2\r\nme\r\n"}, ""})
		}
		for _, i := range []int{0, 1, 2, 3} { // what EXEC answered is GETNAME's
			behind[i].frames = direct[i].frames
		}
		if d := compare(direct, behind); (d != nil) != differ {
			t.Errorf("%s: %v", command, d)
		}
		behind[4].frames = direct[4].frames
		behind[3].frames = []string{"$2\r\nme\r\n"}
		if d := compare(direct, behind); d != nil {
			t.Errorf("%s: within MULTI: %v", command, d)
		}
	}
}

// A command queued in an earlier pipe keeps its leeway until EXEC, and not beyond.
func TestCompareTransactions(t *testing.T) {
	pipes := [][]op{
		{{0, 1, 1, do, []string{"MULTI"}}}, {{0, 2, 2, do, []string{"SMEMBERS", "k"}}},
		{{0, 3, 3, do, []string{"EXEC"}}}, {{0, 4, 4, do, []string{"LRANGE", "k", "0", "1"}}},
	}
	play := func(exec, after string) []outcome {
		frames := []string{"+OK\r\n", "+QUEUED\r\n", exec, after}
		var all []outcome
		for i, p := range pipes {
			all = append(all, outcome{p, frames[i : i+1], ""})
		}
		return all
	}
	ab, ba := "*1\r\n*2\r\n+a\r\n+b\r\n", "*1\r\n*2\r\n+b\r\n+a\r\n"
	if d := compare(play(ab, ab), play(ba, ab)); d != nil {
		t.Error(d)
	}
	if compare(play(ab, ab), play(ab, ba)) == nil {
		t.Error("leeway outlived the transaction")
	}
}

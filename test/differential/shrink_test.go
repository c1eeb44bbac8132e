package differential

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestShrink has a fault that needs three ops in order and nothing else.
func TestShrink(t *testing.T) {
	s := script{cuts: map[int][]int{1: {3}}}
	for i := range 200 {
		s.ops = append(s.ops, op{i % 3, i / 4, i / 4, do, []string{fmt.Sprint(i)}})
	}
	need := []string{"17", "90", "163"}
	asked := 0
	fails := func(s script) bool {
		asked++
		next := 0
		for _, o := range s.ops {
			if next < len(need) && o.args[0] == need[next] {
				next++
			}
		}
		return next == len(need)
	}
	got := shrink(s, 400, fails)
	var left []string
	for _, o := range got.ops {
		left = append(left, o.args[0])
	}
	if !slices.Equal(left, need) || len(got.cuts) != 0 {
		t.Errorf("left %q, cuts %v", left, got.cuts)
	}
	if asked > 400 {
		t.Errorf("asked %d times", asked)
	}
	asked = 0
	if got := shrink(s, 5, fails); asked > 5 || !fails(got) {
		t.Errorf("with a budget of 5: asked %d times, still fails: %v", asked, fails(got))
	}
}

func TestAlike(t *testing.T) {
	differ := func(direct, behind string) error { return &difference{direct: direct, behind: behind} }
	missing, data := differ("+OK\r\n", silent), errors.New("the data differs")
	for _, tt := range []struct {
		a, b error
		want bool
	}{
		{missing, missing, true}, {missing, differ("+OK\r\n", silent), true}, {missing, differ("-ERR\r\n", silent), false},
		{missing, differ("+OK\r\n", closed), false}, {missing, data, false}, {data, missing, false}, {data, data, true}, {nil, data, false},
	} {
		if got := alike(tt.a, tt.b); got != tt.want {
			t.Errorf("%v and %v: alike %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestTable plays each section of the table in both protocols: a command at a time, then all in
// one pipeline whose bytes are split at random.
func TestTable(t *testing.T) {
	p := newPair(t)
	for _, s := range table {
		for _, proto := range []string{"2", "3"} {
			for _, piped := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/RESP%s/piped=%v", s.name, proto, piped), func(t *testing.T) {
					if err := p.run(s.script(proto, piped), replyTimeout); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// script plays a section over one connection.
func (s section) script(proto string, piped bool) script {
	sc := script{cuts: map[int][]int{}}
	random := rand.New(rand.NewPCG(uint64(len(s.lines)), uint64(len(proto))))
	add := func(args ...string) {
		n := len(sc.ops)
		if piped {
			n /= 40
		}
		sc.ops = append(sc.ops, op{0, n, n, do, args})
		sc.cuts[n] = append(sc.cuts[n], random.IntN(1<<20))
	}
	add("HELLO", proto)
	for _, line := range s.lines {
		add(words(line)...)
	}
	return sc
}

// TestTableIsWellFormed guards the table itself: a line that does not split would be played as nothing.
func TestTableIsWellFormed(t *testing.T) {
	lines := 0
	for _, s := range table {
		for _, line := range s.lines {
			lines++
			if len(words(line)) == 0 {
				t.Errorf("%s: %q does not split", s.name, line)
			}
		}
	}
	if lines < 400 {
		t.Errorf("the table has %d lines", lines)
	}
}

// TestSizes plays commands and replies of every size, with a neighbour on the same lane.
func TestSizes(t *testing.T) {
	p := newPair(t)
	sizes := []int{0, 1, 15, 16<<10 - 1, 16 << 10, 64<<10 - 40, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1<<20 - 1, 1 << 20, 3 << 20}
	var s script
	add := func(conn int, args ...string) {
		n := len(s.ops)
		s.ops = append(s.ops, op{conn, n, n / 2, do, args})
	}
	for i, size := range sizes {
		key := fmt.Sprintf("size%d", i)
		add(0, "SET", key, strings.Repeat("x", size))
		add(1, "ECHO", key)
		add(0, "GET", key)
		add(1, "ECHO", key)
		add(0, "APPEND", key, strings.Repeat("\r\n", size/2))
		add(1, "INCR", "n")
		add(0, "MGET", key, "n", key)
		add(1, "GETRANGE", key, "-10", "-1")
		add(0, "NOSUCH", key, strings.Repeat("x", size))
		add(1, "ECHO", key)
	}
	keys := []string{"MGET"}
	values := []string{"MSET"}
	for i := range 10_000 {
		keys = append(keys, fmt.Sprintf("key:%d", i%9_000))
		values = append(values, fmt.Sprintf("key:%d", i), fmt.Sprintf("value of %d", i))
	}
	add(0, values...)
	add(1, "ECHO", "beside")
	add(0, keys...)
	add(1, "ECHO", "beside")
	add(0, "EVAL", "return string.rep('x', 2100000)", "0")
	add(1, "ECHO", "beside")
	for _, proto := range []string{"2", "3"} {
		t.Run("RESP"+proto, func(t *testing.T) {
			hello := op{0, -1, -1, do, []string{"HELLO", proto}}
			if err := p.run(script{ops: append([]op{hello}, s.ops...)}, 2*replyTimeout); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWaitBeside lets several connections of one lane ask for the fate of their writes at the same
// time. Each WAIT retires the lane that the others wrote on, and it changes hands between them.
func TestWaitBeside(t *testing.T) {
	p := newPair(t)
	var s script
	for round := range 30 {
		for conn := range 4 {
			add := func(args ...string) {
				s.ops = append(s.ops, op{conn, 4*round + conn, round, do, args})
			}
			key := fmt.Sprintf("k%d", conn)
			add("INCR", key)
			add("WAIT", "0", "1")
			add("GET", key)
			if conn > 1 {
				add("WAIT", "1", "1")
				add("BLPOP", "nothing", "0.001")
				add("WAIT", "0", "1")
			}
		}
	}
	for range 4 {
		if err := p.run(s, replyTimeout); err != nil {
			t.Fatal(err)
		}
	}
}

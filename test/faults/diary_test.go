//go:build faults

package faults

import (
	"strconv"
	"sync"
)

// diary is the ledger of one list at the server, to which a client appends 0, 1, 2, … and nobody
// else anything. The list shows what was executed, how often, and in which order.
type diary struct {
	key string

	mu      sync.Mutex
	entries []entry
	done    int // answered
	doubts  int // that may have been executed
	began   uint64
}

// entry is what became of one append.
type entry struct {
	verdict verdict
	losses  uint64 // how often the server had lost its data when the command was sent
}

// newDiary opens a ledger that is verified at the end of the run.
func (l *lab) newDiary(key string) *diary {
	d := &diary{key: key, began: l.losses.Load()}
	l.mu.Lock()
	l.diaries = append(l.diaries, d)
	l.mu.Unlock()
	return d
}

// next reserves the next number.
func (d *diary) next(losses uint64) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, entry{lost, losses})
	return len(d.entries) - 1
}

// settle notes what became of a number. n is the length of the list that the server replied, 0 if
// it is not known, losses how often data have been lost by now; false means that it cannot be this
// list's.
func (d *diary) settle(seq int, v verdict, n int, losses uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries[seq].verdict = v
	switch {
	case v == done:
		d.done++
	case v.doubtful():
		d.doubts++
	}
	return v != done || n == 0 || losses != d.began || n >= d.done && n <= d.done+d.doubts
}

// verify compares the ledger with the list. Order is promised among commands whose outcome is
// known: one that went down with its connection may be executed late.
func (d *diary) verify(list []string, t *tally, losses uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := make([]int, len(d.entries))
	last := -1
	for _, text := range list {
		seq, err := strconv.Atoi(text)
		if err != nil || seq < 0 || seq >= len(d.entries) {
			t.violate("P1", "%s holds %.40q, which nobody appended", d.key, text)
			continue
		}
		v := d.entries[seq].verdict
		if seen[seq]++; seen[seq] == 2 {
			t.violate("P3", "%s: %d (%v) was executed more than once", d.key, seq, v)
		}
		if v.certain() {
			t.violate("P3", "%s: %d was executed, and its client told %v", d.key, seq, v)
		}
		if v == done {
			if seq < last {
				t.violate("P2", "%s: %d was executed after %d", d.key, seq, last)
			}
			last = seq
		}
	}
	for seq, e := range d.entries {
		if e.verdict == done && seen[seq] == 0 && e.losses == losses {
			t.violate("P1", "%s: %d was answered and not executed", d.key, seq)
		}
	}
}

// length is the number of an integer reply, 0 for anything else.
func length(reply string) int {
	if len(reply) < 4 || reply[0] != ':' {
		return 0
	}
	n, _ := strconv.Atoi(reply[1 : len(reply)-2])
	return n
}

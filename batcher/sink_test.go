package batcher

import "testing"

// push merges with the last run only, and only for the same owner: merging with an
// earlier one would change the order.
func TestPushMergesWithTheLast(t *testing.T) {
	a, b := newRecorder(), newRecorder()
	var q runs
	for _, s := range []*recorder{a, a, b, a} {
		q.push(s, nil, 1)
	}
	want := []struct {
		sink Sink
		n    int
	}{{a, 2}, {b, 1}, {a, 1}}
	if q.num != len(want) {
		t.Fatalf("%d runs, want %d", q.num, len(want))
	}
	for i, w := range want {
		if r := q.pop(10); r.sink != w.sink || r.n != w.n {
			t.Errorf("run %d has %d commands, want %d", i, r.n, w.n)
		}
	}
}

// What was popped of a run is not merged with what is pushed later.
func TestPopTakesAPart(t *testing.T) {
	a := newRecorder()
	var q runs
	q.push(a, nil, 3)
	if r := q.pop(2); r.n != 2 {
		t.Errorf("popped %d, want 2", r.n)
	}
	q.push(a, nil, 2)
	if r := q.pop(10); r.n != 3 || q.num != 0 {
		t.Errorf("popped %d, %d runs left", r.n, q.num)
	}
}

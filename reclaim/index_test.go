package reclaim

import (
	"slices"
	"strconv"
	"testing"
)

func TestIndex(t *testing.T) {
	var x index[int]
	if !x.empty() || x.has([]byte("a")) {
		t.Error("something is in what is new")
	}
	x.add("a", 1)
	x.add("a", 2)
	before := x.of([]byte("a"))
	x.add("a", 1)
	x.remove("a", 1)
	x.remove("b", 1)
	if got := x.of([]byte("a")); !slices.Equal(got, []int{2, 1}) || !slices.Equal(before, []int{1, 2}) {
		t.Errorf("%v, and what was read before is %v", got, before)
	}
	x.remove("a", 1)
	x.remove("a", 2)
	if !x.empty() || x.has([]byte("a")) {
		t.Error("something is left")
	}
}

// TestIndexChangesAtAShare: the next of very many keys costs no copy of all.
func TestIndexChangesAtAShare(t *testing.T) {
	var x index[int]
	const keys = 1 << 16
	for i := range keys {
		x.add(strconv.Itoa(i), i)
	}
	for i := range keys {
		if !slices.Equal(x.of([]byte(strconv.Itoa(i))), []int{i}) {
			t.Fatal(i)
		}
	}
	r := testing.Benchmark(func(b *testing.B) {
		for i := range b.N {
			x.add("k"+strconv.Itoa(i), i)
			x.remove("k"+strconv.Itoa(i), i)
		}
	})
	if n := r.AllocedBytesPerOp(); n > 32<<10 {
		t.Errorf("%d bytes for one key among %d", n, keys)
	}
	key := []byte("17")
	if n := testing.AllocsPerRun(100, func() { x.has(key) }); n != 0 {
		t.Errorf("%v allocations to look", n)
	}
}

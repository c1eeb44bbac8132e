package differential

import (
	"errors"
	"slices"
)

// alike reports whether two runs have failed in the same way: a smaller script may fail in another,
// because it lacks what a part of it needs.
func alike(a, b error) bool {
	var x, y *difference
	if errors.As(a, &x) && errors.As(b, &y) {
		return beginning(x.direct) == beginning(y.direct) && beginning(x.behind) == beginning(y.behind)
	}
	return a != nil && x == nil && !errors.As(b, &y)
}

// beginning is as much of a reply as says what it is.
func beginning(reply string) string { return reply[:min(len(reply), 9)] }

// shrink returns the smallest script it finds that still fails, by taking out ever smaller parts
// (delta debugging) and then the cuts. fails is asked at most budget times.
func shrink(s script, budget int, fails func(script) bool) script {
	ask := func(t script) bool {
		budget--
		return budget >= 0 && fails(t)
	}
	for size := (len(s.ops) + 1) / 2; size > 0 && budget > 0; {
		smaller := false
		for from := 0; from < len(s.ops) && budget > 0; {
			t := s
			t.ops = slices.Concat(s.ops[:from], s.ops[min(from+size, len(s.ops)):])
			if len(t.ops) > 0 && ask(t) {
				s, smaller = t, true
				continue
			}
			from += size
		}
		if size == 1 && !smaller {
			break
		}
		if size > 1 {
			size = (size + 1) / 2
		}
	}
	whole := s
	whole.cuts = nil
	if len(s.cuts) > 0 && ask(whole) {
		return whole
	}
	return s
}

package reclaim

import (
	"container/heap"
	"time"
)

// agenda is a heap of the sweeps that wait for their round, the soonest first: there may
// be very many, and the engine is woken far more often than one of them is due.
type agenda []*sweep

var _ heap.Interface = (*agenda)(nil)

// Len implements heap.Interface.
func (a agenda) Len() int { return len(a) }

// Less implements heap.Interface.
func (a agenda) Less(i, j int) bool { return a[i].due.Before(a[j].due) }

// Swap implements heap.Interface.
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

// Push implements heap.Interface.
func (a *agenda) Push(w any) {
	w.(*sweep).place = len(*a)
	*a = append(*a, w.(*sweep))
}

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	w := (*a)[last]
	(*a)[last] = nil
	*a, w.place = (*a)[:last], -1
	return w
}

// set has a sweep looked at then.
func (a *agenda) set(w *sweep, due time.Time) {
	w.due = due
	if w.place < 0 {
		heap.Push(a, w)
	} else {
		heap.Fix(a, w.place)
	}
}

// next takes out a sweep that is due; if none is, it returns when the first will be, zero
// if there is none.
func (a *agenda) next(now time.Time) (w *sweep, at time.Time) {
	switch {
	case len(*a) == 0:
		return nil, at
	case now.Before((*a)[0].due):
		return nil, (*a)[0].due
	}
	return heap.Pop(a).(*sweep), at
}

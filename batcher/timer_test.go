package batcher

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// timed returns a waiter whose calls arrive on a channel with their time.
func timed(t *testing.T) (*waiter, chan time.Time) {
	t.Helper()
	fired := make(chan time.Time, 100)
	w, err := newWaiter(func() { fired <- time.Now() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w, fired
}

// next returns the time of the next call or fails.
func next(t *testing.T, fired <-chan time.Time) time.Time {
	t.Helper()
	select {
	case at := <-fired:
		return at
	case <-time.After(10 * time.Second):
		t.Fatal("the waiter never fired")
		return time.Time{}
	}
}

// Never early, and not late by another order of magnitude; how exactly a short
// wait is kept is for the benchmarks to say.
func TestWaiterKeepsTime(t *testing.T) {
	w, fired := timed(t)
	for _, d := range []time.Duration{0, 50 * time.Microsecond, time.Millisecond} {
		late := make([]time.Duration, 21)
		for i := range late {
			start := time.Now()
			w.Arm(d)
			late[i] = next(t, fired).Sub(start) - d
			if late[i] < 0 {
				t.Errorf("%v: early by %v", d, -late[i])
			}
		}
		slices.Sort(late)
		t.Logf("%v: median %v late", d, late[len(late)/2])
		if median := late[len(late)/2]; median > 5*time.Millisecond {
			t.Errorf("%v: median %v late", d, median)
		}
	}
}

// A wait that was replaced or cancelled in good time is never delivered: the
// sentinel armed afterwards comes alone.
func TestWaiterRearmAndDisarm(t *testing.T) {
	w, fired := timed(t)
	w.Arm(time.Hour)
	w.Arm(time.Millisecond)
	next(t, fired)
	w.Arm(time.Hour)
	w.Disarm()
	w.Disarm()
	start := time.Now()
	w.Arm(2 * time.Millisecond)
	if took := next(t, fired).Sub(start); took < 2*time.Millisecond {
		t.Errorf("fired after %v", took)
	}
	if n := len(fired); n != 0 {
		t.Errorf("%d calls too many", n)
	}
}

// Arming again and again around the expiry loses no call: the last one always
// comes.
func TestWaiterNeverMissesTheLast(t *testing.T) {
	var deadline atomic.Int64
	reached := make(chan struct{}, 1)
	start := time.Now()
	w, err := newWaiter(func() {
		if time.Since(start) >= time.Duration(deadline.Load()) {
			select {
			case reached <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range 200 {
		d := time.Duration(20+i%40) * time.Microsecond
		deadline.Store(int64(time.Since(start) + d))
		select {
		case <-reached:
		default:
		}
		w.Arm(d)
		if i%3 != 0 {
			continue
		}
		select {
		case <-reached:
		case <-time.After(10 * time.Second):
			t.Fatal("the last wait was lost")
		}
	}
}

// Close waits for a call that is running, and none comes after it.
func TestWaiterCloseJoins(t *testing.T) {
	entered, leave := make(chan struct{}, 10), make(chan struct{})
	var closed atomic.Bool
	w, err := newWaiter(func() {
		entered <- struct{}{}
		<-leave
		if closed.Load() {
			t.Error("a call outlived Close")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Arm(0)
	<-entered
	w.Arm(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Close()
		closed.Store(true)
	}()
	select {
	case <-done:
		t.Error("closed while a call was running")
	case <-time.After(5 * time.Millisecond):
	}
	close(leave)
	<-done
	w.Arm(0)
	w.Disarm()
	w.Close()
}

func TestWaiterAllocatesNothing(t *testing.T) {
	w, err := newWaiter(func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if n := testing.AllocsPerRun(100, func() {
		w.Arm(time.Hour)
		w.Disarm()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

//go:build linux && !notimerfd

package batcher

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// minDelay is the shortest flush delay worth arming: below it the way through
// the poller takes longer than the delay itself.
const minDelay = 20 * time.Microsecond

// waiter calls a function once a short time has passed. It is a timerfd read
// through the runtime's poller: in an otherwise idle process the runtime's own
// timers fire up to a millisecond late when less than that is asked for, and a
// thread that sleeps in the kernel holds a processor back from everybody else.
//
// What is guaranteed: an Arm that is not followed by another Arm, a Disarm or
// Close before its time is followed by a call that begins after its time. Calls
// never overlap. An expiry that was already read when the waiter is armed anew
// or disarmed may still be delivered once, so the function must look at its own
// clock (the lane does: it asks its Policy again). Expiries not yet read are
// discarded by the kernel.
//
// One goroutine, started by newWaiter and joined by Close.
type waiter struct {
	fire func()
	file *os.File
	done chan struct{}

	mu sync.Mutex // guards fd against use after Close
	fd int        // -1 once closed
}

// newWaiter returns a disarmed waiter that calls fire, which must not call
// Close. It fails when the kernel or a sandbox refuses a timerfd.
func newWaiter(fire func()) (*waiter, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create flush timer: %w", err)
	}
	w := &waiter{fire: fire, fd: fd, file: os.NewFile(uintptr(fd), "timerfd"), done: make(chan struct{})}
	go w.run()
	return w, nil
}

// run waits in the poller for expiries until the file is closed.
func (w *waiter) run() {
	defer close(w.done)
	var expiries [8]byte
	for {
		if _, err := w.file.Read(expiries[:]); err != nil {
			return
		}
		w.fire()
	}
}

// Arm sets the time to the next call, replacing the one set before. A d that
// is not positive fires as soon as possible.
func (w *waiter) Arm(d time.Duration) { w.set(max(d, time.Nanosecond)) }

// Disarm cancels the call, see waiter for one that is already under way.
func (w *waiter) Disarm() { w.set(0) }

// set hands d to the kernel; 0 disarms. Its errors are all faults of the
// arguments, which are well-formed here.
func (w *waiter) set(d time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd >= 0 {
		_ = unix.TimerfdSettime(w.fd, 0, &spec, nil)
	}
}

// Close releases the timer and returns when no call is running or will come.
// Closing twice is harmless.
func (w *waiter) Close() {
	w.mu.Lock()
	w.fd = -1
	w.mu.Unlock()
	_ = w.file.Close()
	<-w.done
}

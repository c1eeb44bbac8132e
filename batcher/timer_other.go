//go:build !linux || notimerfd

package batcher

import (
	"sync"
	"time"
)

// minDelay is the shortest flush delay worth arming: the runtime's timers may
// fire a millisecond late in an idle process, so that less cannot be kept.
const minDelay = time.Millisecond

// waiter calls a function once a short time has passed. It is the runtime's own
// timer, for systems without timerfd.
//
// What is guaranteed: an Arm that is not followed by another Arm, a Disarm or
// Close before its time is followed by a call that begins after its time. Calls
// never overlap. An expiry that is already under way when the waiter is armed
// anew or disarmed may still be delivered once, so the function must look at its
// own clock (the lane does: it asks its Policy again).
//
// No goroutine of its own; calls run on the runtime's, and Close waits for them.
type waiter struct {
	fire  func()
	timer *time.Timer

	calls sync.Mutex // held during a call, so that calls do not overlap

	mu      sync.Mutex // guards closed; taken before no other lock
	closed  bool
	running sync.WaitGroup
}

// newWaiter returns a disarmed waiter that calls fire, which must not call
// Close. It never fails here.
func newWaiter(fire func()) (*waiter, error) {
	w := &waiter{fire: fire}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(time.Hour, w.expired)
	w.timer.Stop()
	return w, nil
}

// expired runs one call unless the waiter is closed.
func (w *waiter) expired() {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.running.Add(1)
	w.mu.Unlock()
	defer w.running.Done()
	w.calls.Lock()
	defer w.calls.Unlock()
	w.fire()
}

// Arm sets the time to the next call, replacing the one set before. A d that
// is not positive fires as soon as possible.
func (w *waiter) Arm(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.timer.Reset(d)
	}
}

// Disarm cancels the call, see waiter for one that is already under way.
func (w *waiter) Disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
}

// Close stops the timer and returns when no call is running or will come.
// Closing twice is harmless.
func (w *waiter) Close() {
	w.mu.Lock()
	w.closed = true
	w.timer.Stop()
	w.mu.Unlock()
	w.running.Wait()
}

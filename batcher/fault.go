//go:build fault_swap || fault_resend || fault_drop

package batcher

import (
	"sync/atomic"
	"time"
)

// chances counts the opportunities for a fault.
var chances atomic.Int64

// faulty reports whether it is time for one.
func faulty() bool { return chances.Add(1)%faultEvery == 0 }

// nobody is an owner who wants no reply.
type nobody struct{}

var _ Sink = nobody{}

// Reply implements Sink.
func (nobody) Reply([]byte, int, int) {}

// Flush implements Sink.
func (nobody) Flush() {}

// Fail implements Sink.
func (nobody) Fail(int, error) {}

// Pace implements Sink.
func (nobody) Pace(int64, time.Duration) bool { return true }

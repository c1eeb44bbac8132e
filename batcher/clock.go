package batcher

import "time"

var epoch = time.Now()

// nanotime is the monotonic clock of this package, in nanoseconds.
func nanotime() int64 { return int64(time.Since(epoch)) }

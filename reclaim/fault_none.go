//go:build !fault_early && !fault_hide

package reclaim

import "time"

// claimIdle and hides are where planted faults (see batcher/fault_none.go) claim too early, or keep
// what was claimed from the client. In every other build they are nothing.
func claimIdle(d time.Duration) time.Duration { return d }

func hides() bool { return false }

//go:build fault_hide

package reclaim

import "time"

func claimIdle(d time.Duration) time.Duration { return d }

// hides answers that nothing was claimed.
func hides() bool { return true }

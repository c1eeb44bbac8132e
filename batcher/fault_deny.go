//go:build fault_deny

package batcher

// denied tells the owner of the last of n commands with an unknown outcome that it was not sent.
func denied(n int) int { return min(n, 1) }

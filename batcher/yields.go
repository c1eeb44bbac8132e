package batcher

import "time"

// yields knows whether it is worth yielding the processor before a batch is written. Where many
// goroutines are at work for other reasons, clients that come and go by the thousand for one, a yield
// lasts until all of them have had their turn, and whoever yields has waited a third time for what
// it waits for twice anyway. It is worth that if others join the batch. If not, it is tried ever more
// rarely.
type yields struct {
	skip int // so many are not made now
	vain int // how many will not be made after the next one in vain, about half as many
}

const (
	// longYield is what a yield may take in vain.
	longYield = 200 * time.Microsecond
	// rarestYield is one of how many is made at least.
	rarestYield = 1 << 10
)

// due reports whether to yield.
func (y *yields) due() bool {
	if y.skip > 0 {
		y.skip--
		return false
	}
	return true
}

// took notes how long a yield has taken, and whether somebody has joined the batch meanwhile.
func (y *yields) took(d time.Duration, joined bool) {
	if joined || d < longYield {
		y.vain = 0
		return
	}
	y.vain = min(2*y.vain+1, rarestYield)
	y.skip = y.vain
}

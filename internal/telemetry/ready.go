package telemetry

import "time"

// Readiness decides whether traffic should be sent here, from samples of the
// server's state. It is pure: time comes with the samples.
//
// It is ready with the first good sample. Later it changes its mind only when the
// new state has lasted: a failover of a second must not take every proxy of a fleet
// out of service at once, and a server that flaps must not bring them back and forth.
type Readiness struct {
	// FailAfter is how long the server must be away before readiness is lost, PassAfter
	// how long it must be back before readiness returns.
	FailAfter, PassAfter time.Duration

	ready  bool
	once   bool      // has been ready before
	since  time.Time // of the first sample that contradicts ready
	doubts bool      // since is set
}

// DefaultReadiness loses readiness after 3 s and regains it after 1 s.
func DefaultReadiness() Readiness {
	return Readiness{FailAfter: 3 * time.Second, PassAfter: time.Second}
}

// Sample takes in the server's state at the time now and returns whether the proxy
// is ready. Times must not go back.
func (r *Readiness) Sample(now time.Time, up bool) bool {
	if up == r.ready {
		r.doubts = false
		return r.ready
	}
	if !r.doubts {
		r.doubts, r.since = true, now
	}
	patience := r.FailAfter
	if up {
		patience = r.PassAfter
		if !r.once {
			patience = 0
		}
	}
	if now.Sub(r.since) >= patience {
		r.ready, r.doubts = up, false
		r.once = r.once || up
	}
	return r.ready
}

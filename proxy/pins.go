package proxy

import "golang.org/x/time/rate"

// RESET behind a subscription, MONITOR or the like costs a connection to the server, and what pins the
// client again takes another one. A client may do the two in turn without end, and hundreds that do
// have everybody who needs a connection wait for the dials. So it is pinned anew a number of times as
// it likes, and then at a pace.
const (
	// pinsPerSecond and pinBurst bound how often one session is pinned again.
	pinsPerSecond = 2
	pinBurst      = 16
)

// pacePin counts one more time that the session is pinned, and waits until it is time for it. Only this
// session waits.
func (s *session) pacePin() {
	if s.pins == nil { // no RESET has cost a connection yet
		return
	}
	if d := s.pins.Reserve().Delay(); d > 0 {
		s.waitIdle() // nothing else does
		s.pause(d)
	}
}

// unpinned notes that a RESET has cost a connection.
func (s *session) unpinned() {
	if s.pins == nil {
		s.pins = rate.NewLimiter(pinsPerSecond, pinBurst)
	}
}

package heap

// sample is what is known of the process's memory at one moment, in bytes.
type sample struct {
	resident  int64 // mapped and not given back to the system
	allocated int64 // ever allocated
	held      int64 // known to be in use beyond what the process needs for itself
}

const (
	// worth is the least excess in bytes that a collection is made for.
	worth = 8 << 20
	// calm is how many bytes a quiet process may allocate between two samples.
	calm = 1 << 20
	// collections follow each other: what lies in pools survives the first one, and the
	// runtime keeps as many pages as the collection before the last would have needed.
	collections = 3
)

// keeper decides, sample by sample, when to collect. It has no clock of its own.
//
// When no more comes back after its collections it remembers what is resident while so much is
// held: that is the floor. A burst that comes before that leaves the old one, because what it finds
// resident has not stayed, it has only not gone yet. From then on as much more or less is expected as is held, and what is resident beyond that is the
// excess. So whatever stays is collected for once, and an idle process never.
type keeper struct {
	known     bool
	floor     int64 // resident
	floorHeld int64
	allocated int64
	last      int64 // resident at the sample before
	settling  int   // samples since a collection; 0: none is being looked back at
}

// step takes a sample and reports whether to collect now.
func (k *keeper) step(s sample) (collect bool) {
	grown, last := s.allocated-k.allocated, k.last
	k.allocated, k.last = s.allocated, s.resident
	if !k.known {
		k.known, k.floor, k.floorHeld = true, s.resident, s.held
		return false
	}
	expected := max(k.floor+s.held-k.floorHeld, 0)
	excess := s.resident - expected
	quiet := grown < max(calm, excess/8)
	switch {
	case k.settling > 0 && !quiet:
		k.settling = 0
		return false
	case k.settling > 0 && k.settling < collections:
		k.settling++
		return true
	case k.settling > 0:
		// The system gets its pages back in the background, over seconds.
		if s.resident >= last-last/64 {
			k.settling, k.floor, k.floorHeld = 0, s.resident, s.held
		}
		return false
	case quiet && excess > max(worth, expected/4):
		k.settling = 1
		return true
	}
	return false
}

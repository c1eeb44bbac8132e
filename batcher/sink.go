package batcher

import "time"

// Sink is the owner of commands: it gets their replies, in the order in which the
// commands were submitted. Its methods are called by one goroutine at a time per
// connection, never with a lock of this package held.
type Sink interface {
	// Reply hands over bytes of this sink's next replies, of which done end within
	// b. If the last one is incomplete, open is how many bytes of it have been handed
	// over so far, those in b included; else 0. b is valid only during the call.
	Reply(b []byte, done, open int)
	// Flush marks the end of what the connection had to say at once.
	Flush()
	// Fail says that the next n commands will not be answered (any more): err is
	// ErrNotSent or ErrUnknown. For a raw connection n is 0.
	Fail(n int, err error)
	// Pace is called within a giant reply or on a raw connection. It blocks while
	// the sink holds more than limit unsent bytes, and returns false when its client
	// has taken nothing for stall (0: as long as the sink itself allows).
	Pace(limit int64, stall time.Duration) bool
}

// Timed is a Sink that wants to know how long a round trip to the server took.
type Timed interface {
	// Trip is called before Reply with the time from a write on an idle connection to
	// the first byte that came back, if this sink's command was the first in it.
	Trip(d time.Duration)
}

// Seat is a session's place on a shared connection. It is embedded in the session.
// Connections change roles: a seat holds good only for the time as a lane in which
// it was taken.
//
// Its member is another one on each connection: a session leaves as soon as it has its last
// reply, which the connection's reader books a moment later.
type Seat struct {
	member *Member
	epoch  uint64
}

// run is a number of consecutive commands of one owner.
type run struct {
	sink   Sink
	member *Member
	n      int
}

// runs is a FIFO of runs in a ring whose capacity is a power of two.
type runs struct {
	ring      []run
	head, num int
}

// maxIdleRing is the ring size kept while the FIFO is empty; what a burst needed
// beyond it is given back.
const maxIdleRing = 256

// push appends n commands of sink; it extends the last run where the owner is the
// same, so that a pipeline costs one entry.
func (q *runs) push(sink Sink, m *Member, n int) {
	if q.num > 0 {
		last := &q.ring[(q.head+q.num-1)&(len(q.ring)-1)]
		if last.sink == sink {
			last.n += n
			return
		}
	}
	if q.num == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.num)&(len(q.ring)-1)] = run{sink, m, n}
	q.num++
}

// others reports whether anybody but this owner has a run.
func (q *runs) others(than Sink) bool {
	for i := range q.num {
		if q.ring[(q.head+i)&(len(q.ring)-1)].sink != than {
			return true
		}
	}
	return false
}

func (q *runs) grow() {
	ring := make([]run, max(16, 2*len(q.ring)))
	for i := range q.num {
		ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
	}
	q.ring, q.head = ring, 0
}

// pop takes at most limit commands of the first run. The caller sees to it that
// the FIFO is not empty and limit is positive.
func (q *runs) pop(limit int) run {
	first := &q.ring[q.head]
	if first.n > limit {
		first.n -= limit
		return run{first.sink, first.member, limit}
	}
	r := *first
	*first = run{}
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.num--
	if q.num == 0 && len(q.ring) > maxIdleRing {
		q.ring, q.head = nil, 0
	}
	return r
}

//go:build fault_swap

package batcher

// faultEvery is how many opportunities pass between two faults.
const faultEvery = 2

// fault lets two owners who wait for equally many replies get each other's. The lock is held.
func (c *Conn) fault([]byte, int) {
	q := &c.fifo
	if q.num < 2 {
		return
	}
	last := &q.ring[(q.head+q.num-1)&(len(q.ring)-1)]
	before := &q.ring[(q.head+q.num-2)&(len(q.ring)-1)]
	if last.n == before.n && last.sink != before.sink && faulty() {
		last.sink, before.sink = before.sink, last.sink
		last.member, before.member = before.member, last.member
	}
}

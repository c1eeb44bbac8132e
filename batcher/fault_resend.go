//go:build fault_resend

package batcher

// faultEvery is how many opportunities pass between two faults.
const faultEvery = 100

// fault sends commands a second time and keeps the second replies to itself. The lock is held.
func (c *Conn) fault(raw []byte, n int) {
	if faulty() {
		c.out = append(c.out, raw...)
		c.queued += n
		c.fifo.push(nobody{}, nil, n)
	}
}

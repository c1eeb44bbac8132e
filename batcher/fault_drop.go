//go:build fault_drop

package batcher

// faultEvery is how many opportunities pass between two faults.
const faultEvery = 200

// fault takes the last command's reply from its owner. The lock is held.
func (c *Conn) fault([]byte, int) {
	if !faulty() {
		return
	}
	last := &c.fifo.ring[(c.fifo.head+c.fifo.num-1)&(len(c.fifo.ring)-1)]
	if last.n == 1 {
		last.sink, last.member = nobody{}, nil
		return
	}
	last.n--
	c.fifo.push(nobody{}, nil, 1)
}

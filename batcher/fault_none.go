//go:build !fault_swap && !fault_resend && !fault_drop

package batcher

// fault is where test/differential and test/faults plant faults: builds with one of the fault tags do
// wrong here once in a while, to prove that the tests notice. In every other build it is nothing.
func (*Conn) fault([]byte, int) {}

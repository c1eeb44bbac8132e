package proxy

import (
	"context"
	"net"
	"runtime"
	"syscall"

	"golang.org/x/sync/semaphore"
)

// Handshakes are the TLS handshakes of clients in which the private key is about to be used,
// the dear part of them. Those beyond one for each thread wait, in the order in which they came;
// so a thread has little to do before it comes to who is served already. A recorded hello, and a reset
// behind it, cost their sender nothing: whoever has left is let go when it has said hello, in the wait,
// and after it.
type Handshakes struct{ turns *semaphore.Weighted }

// NewHandshakes returns the gate for the TLS listeners of a process, see certs.Gate.
func NewHandshakes() *Handshakes {
	return &Handshakes{semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))}
}

// Look tells of a client that has left already.
func (h *Handshakes) Look(client net.Conn) error {
	if sc, ok := client.(syscall.Conn); ok {
		if rc, err := sc.SyscallConn(); err == nil && isReset(rc) {
			return errGone
		}
	}
	return nil
}

// Enter waits for the key. The session of a client that leaves meanwhile ends ctx.
func (h *Handshakes) Enter(ctx context.Context, client net.Conn) (leave func(), err error) {
	if err := h.turns.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	if err := h.Look(client); err != nil {
		h.turns.Release(1)
		return nil, err
	}
	return func() { h.turns.Release(1) }, nil
}

package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"streamproxy/internal/upstream"
)

// Whether the server lets a key in a dial tells, which is made for all who want to know: of a crowd that
// comes to a database where nobody is yet, one has it dialled.

// visits are a hub's.
type visits struct {
	mu    sync.Mutex
	now   *visit // nil: none is under way
	fault error  // the last one's
}

// visit is a dial to find out whether the server lets the hub's key in. It ends with the last of those
// who wait for it.
type visit struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // once done
}

// failed reports whether the last visit failed.
func (v *visits) failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.fault != nil
}

// reach makes sure that the server lets this key in. It dials a private connection
// unless there is one, which the lane takes over when it is asked for, if there may be
// one more. A refusal is told at once; a server that cannot be reached is tried until
// ctx ends.
func (h *hub) reach(ctx context.Context) error {
	for n := 1; !h.connected(); n++ {
		err := h.visit(ctx)
		var he *upstream.HandshakeError
		if err == nil || errors.As(err, &he) && !upstream.Unavailable(err) {
			return err
		}
		select {
		case <-time.After(h.p.dialer.Gate.Pause(n)):
		case <-ctx.Done():
			return err
		case <-h.p.closing:
			return err
		}
	}
	return nil
}

// visit waits for the visit under way, which it begins if there is none.
func (h *hub) visit(ctx context.Context) error {
	v := h.join()
	select {
	case <-v.done:
		return v.err
	case <-ctx.Done():
	case <-h.p.closing:
	}
	h.visits.mu.Lock()
	defer h.visits.mu.Unlock()
	if v.waiting--; v.waiting == 0 {
		v.cancel()
		if h.visits.now == v {
			h.visits.now = nil
		}
	}
	if h.visits.fault != nil {
		return h.visits.fault
	}
	return ctx.Err()
}

func (h *hub) join() *visit {
	h.visits.mu.Lock()
	defer h.visits.mu.Unlock()
	v := h.visits.now
	if v == nil {
		ctx, cancel := context.WithCancel(h.p.ctx)
		v = &visit{cancel: cancel, done: make(chan struct{})}
		h.visits.now = v
		h.p.wg.Go(func() { h.pay(ctx, v) })
	}
	v.waiting++
	return v
}

// pay makes a visit.
func (h *hub) pay(ctx context.Context, v *visit) {
	defer v.cancel()
	c, err := h.dial(ctx, "private")
	if err == nil {
		h.add(c, true)
	}
	h.visits.mu.Lock()
	defer h.visits.mu.Unlock()
	if h.visits.now == v {
		h.visits.now, h.visits.fault = nil, err
	}
	v.err = err
	close(v.done)
}

package proxy

import (
	"bytes"
	"time"

	"streamproxy/batcher"
	"streamproxy/reclaim"
)

// parkedRead stands between a blocked XREADGROUP's private connection and its
// client: a null is not passed on before reclaim had its say.
type parkedRead struct {
	s    *session
	e    *exclusive
	head []byte // the reply's beginning, until it is known whether it is a null
	open bool   // it is not; the rest passes
}

var _ batcher.Sink = (*parkedRead)(nil)

// Reply implements batcher.Sink.
func (r *parkedRead) Reply(b []byte, done, open int) {
	if r.open {
		r.e.seg.Reply(b, done, open)
		return
	}
	r.head = append(r.head, b...)
	null := isNull(r.head)
	switch {
	case done == 0 && (null || len(r.head) < len("*-")):
	case null:
		reply := r.head
		r.head = nil
		r.s.p.wg.Go(func() { r.cameNull(reply) })
	default:
		r.open = true
		r.e.seg.Reply(r.head, done, open)
	}
}

// isNull recognises the beginning of a null in both versions of the protocol.
func isNull(b []byte) bool { return b[0] == '_' || bytes.HasPrefix(b, []byte("*-")) }

// Flush implements batcher.Sink.
func (r *parkedRead) Flush() { r.e.seg.Flush() }

// Fail implements batcher.Sink.
func (r *parkedRead) Fail(n int, err error) { r.e.seg.Fail(n, err) }

// Pace implements batcher.Sink.
func (r *parkedRead) Pace(limit int64, stall time.Duration) bool { return r.e.seg.Pace(limit, stall) }

// cameNull asks reclaim what becomes of a read that found nothing: its client gets
// entries instead of the null, or the null, or the read goes on.
func (r *parkedRead) cameNull(null []byte) {
	s, e := r.s, r.e
	e.calling.Lock()   // an UNBLOCK under way must not hit what is sent next
	e.calling.Unlock() //nolint:staticcheck // only its end is waited for
	out := reclaim.Outcome{Reply: null}
	if !r.clientLeft() {
		ctx, cancel := s.p.within(s.p.cfg.UpstreamTimeout)
		out = e.parked.Nil(ctx, null)
		cancel()
	}
	if out.Again && e.rearm != nil {
		if !r.clientLeft() {
			r.again(out.Block)
			return
		}
		out.Reply = null
	}
	if out.Handout != nil {
		s.mu.Lock()
		// What was claimed is the handout's to give back, and not to be taken for what
		// the read itself has brought.
		e.seg.handout, e.seg.tee = out.Handout, nil
		s.mu.Unlock()
	}
	e.seg.Reply(out.Reply, 1, 0)
	e.seg.Flush()
}

// again sends the read again, over another connection if there is no more use for its own.
func (r *parkedRead) again(block time.Duration) {
	c := r.s.connOf(r.e)
	if !c.Aimed() && r.e.rearm.send(block) {
		return
	}
	c.Close()
	r.e.rearm.goOn(batcher.ErrNotSent) // a null before its time would be a lie
}

func (r *parkedRead) clientLeft() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.e.left || r.e.farewell || r.s.closed || r.s.gone
}

// watchParked calls a blocked read back when reclaim has something for it.
func (s *session) watchParked(e *exclusive) {
	for {
		select {
		case <-e.parked.Unblock():
		case <-e.ended:
			return
		case <-s.p.closing:
			return
		}
		e.calling.Lock()
		s.mu.Lock()
		over := e.settled || e.left
		s.mu.Unlock()
		if !over {
			_ = s.recall(e) // the connection knows of one that may still come
		}
		e.calling.Unlock()
	}
}

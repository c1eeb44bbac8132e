package proxy

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
)

// A client that SELECTs moves to connections which are in that database already, and whose user was
// allowed to SELECT when they were dialled. That right can be taken away. So the server is asked, over
// one of them, unless it has agreed a moment ago: it is in the database already, and the answer is the
// client's. Rejected: to ask over the connection that the client comes from, which others share.

// selects is when the server agreed last that a hub's user may SELECT its database.
type selects struct{ agreed atomic.Int64 } // unix nanoseconds

func (q *selects) note() { q.agreed.Store(time.Now().UnixNano()) }

func (q *selects) recent() bool { return time.Since(time.Unix(0, q.agreed.Load())) < provenFor }

// maySelect asks the server whether the hub's user may SELECT its database. The error is an
// *upstream.HandshakeError if it may not.
func (h *hub) maySelect(ctx context.Context) error {
	if h.selects.recent() {
		return nil
	}
	c := h.spares.pop()
	spare := c != nil
	if !spare { // there may be no room for one
		if c = h.anyLane(); c == nil {
			return h.reach(ctx) // all are lost meanwhile: a dial asks as well
		}
	}
	wait, cancel := h.p.within(h.p.cfg.UpstreamTimeout)
	defer cancel()
	_, err := askRaw(wait, c, resp.AppendCommand(nil, "SELECT", strconv.Itoa(h.key.DB)))
	var refusal *upstream.ReplyError
	switch {
	case err == nil:
		h.selects.note()
	case errors.As(err, &refusal):
		err = &upstream.HandshakeError{Step: "SELECT", Reply: refusal.Reply}
	case spare:
		c.Close() // the reply may still come
		return err
	}
	if spare {
		h.giveBack(c)
	}
	return err
}

// anyLane is the connection of a lane, nil if there is none.
func (h *hub) anyLane() *batcher.Conn {
	for _, l := range h.lanes {
		if c := l.Conn(); c != nil {
			return c
		}
	}
	return nil
}

// answersFor reports whether a refusal of a new connection is the answer to a command of that verb. That
// there is no SELECT now, or not any more, is none to HELLO or RESET, which the server would take, nor
// that it can do nothing now to AUTH.
func answersFor(refusal *upstream.HandshakeError, v Verb) bool {
	switch {
	case refusal.Step != "SELECT" || v == VerbSelect:
		return true
	case v == VerbAuth:
		return !upstream.NotNow(refusal) // see loginHere
	}
	return false
}

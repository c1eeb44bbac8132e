package proxy

import (
	"strconv"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
	"streamproxy/reclaim"
)

// rearm keeps a blocked read of streams alive. It stands between the read's private
// connection and its client: if the connection is lost before a byte of the reply has
// come, the read goes on over another one, with what is left of its time. A read of a
// group that was lost may have been assigned entries, which would then be hidden by any
// other answer than that its outcome is unknown: the server is asked first.
type rearm struct {
	s        *session
	e        *exclusive
	next     batcher.Sink
	deadline time.Time // zero: the read has no end
	sent     time.Time // over the connection that it is on
	began    bool      // a byte of the reply under way has come
	lost     time.Time // when that connection was
	doubt    bool      // it may have carried entries
}

var _ batcher.Sink = (*rearm)(nil)

// rearmable reports whether a lost read may be sent again. A read of what comes from
// now on would deny what came meanwhile; one without pending entries pops.
func rearmable(verb Verb, cmd resp.Command) bool {
	scan := scanRead(cmd)
	if scan.odd || scan.block == 0 || scan.noack || parseMillis(cmd.Arg(scan.block)) < 0 {
		return false
	}
	if verb == VerbXReadGroup {
		return true
	}
	ids := (cmd.Len() - scan.streams) / 2
	for i := cmd.Len() - ids; i < cmd.Len(); i++ {
		if id := string(cmd.Arg(i)); id == "$" || id == "+" {
			return false
		}
	}
	return verb == VerbXRead
}

// keepAlive returns how a blocked read is sent, and the sink to send it with: a rearm
// before its own if it may be sent again.
func (s *session) keepAlive(e *exclusive, next batcher.Sink) (batcher.Sink, []byte) {
	_, ms, ok := blockOption(e.cmd)
	if !ok || ms < 0 {
		return next, e.cmd.Raw // the server will refuse it
	}
	block := time.Duration(min(ms, maxBlock.Milliseconds())) * time.Millisecond
	if rearmable(e.verb, e.cmd) {
		e.rearm = &rearm{s: s, e: e, next: next, sent: time.Now()}
		if block > 0 {
			e.rearm.deadline = time.Now().Add(block)
		}
		next = e.rearm
	}
	if short := s.p.shortened(block); short != block {
		return next, rearmed(e.cmd, short)
	}
	return next, e.cmd.Raw
}

// maxBlock keeps a deadline within what a time can hold.
const maxBlock = 100 * 365 * 24 * time.Hour

// Reply implements batcher.Sink.
func (r *rearm) Reply(b []byte, done, open int) {
	r.began = true
	r.next.Reply(b, done, open)
}

// Flush implements batcher.Sink.
func (r *rearm) Flush() { r.next.Flush() }

// Pace implements batcher.Sink.
func (r *rearm) Pace(limit int64, stall time.Duration) bool { return r.next.Pace(limit, stall) }

// Fail implements batcher.Sink.
func (r *rearm) Fail(n int, err error) {
	if r.began || r.over() {
		r.next.Fail(n, err)
		return
	}
	r.lost, r.doubt = time.Now(), r.e.verb == VerbXReadGroup && !batcher.SafeToRetry(err)
	r.s.p.wg.Go(func() { r.goOn(err) })
}

// over reports whether nobody waits for the read any more.
func (r *rearm) over() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.e.left || r.e.farewell || r.s.closed || r.s.p.stopping()
}

// goOn sends the read again, or ends it as its time is up. It fails if it may have been
// answered.
func (r *rearm) goOn(lost error) {
	s := r.s
	pause := upstream.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	for n := 1; ; n++ {
		left, expired := r.left()
		switch {
		case r.over(), expired && r.doubt:
			r.fail(lost)
			return
		case expired:
			r.answer(null(s.key.Proto))
			return
		}
		patience := s.p.cfg.UpstreamWait
		if left > 0 {
			patience = min(patience, left)
		}
		assigned, err := r.assigned(patience)
		switch {
		case assigned:
			r.fail(lost)
			return
		case s.refusalOf(err) != nil: // nobody can ask
			r.turnedAway(func() { r.fail(lost) })
			return
		case err != nil:
			s.p.pause(min(patience, pause.Delay(n)))
			continue
		}
		ctx, cancel := s.p.within(patience)
		// As a stranger's: thousands may have lost theirs at a time, and would stand before everybody else.
		c, err := s.hub.take(ctx, (*spares).first, claim{use: useHold})
		cancel()
		if err == nil && r.sendOver(c, left) {
			return
		}
		if refusal := s.refusalOf(err); refusal != nil {
			r.turnedAway(func() { r.answer(refusal) })
			return
		}
	}
}

// answer ends the read with a reply of the proxy's own.
func (r *rearm) answer(reply []byte) {
	r.e.seg.Reply(reply, 1, 0)
	r.e.seg.Flush()
}

// fail ends the read with what became of the connection that it was lost with.
func (r *rearm) fail(lost error) {
	r.next.Fail(1, lost)
	r.next.Flush()
}

// assigned reports whether the connection that was lost may have carried entries of a group,
// when it can carry none any more. A proxy that gets no control connection for long has to do
// without the latter.
func (r *rearm) assigned(patience time.Duration) (bool, error) {
	if !r.doubt {
		return false, nil
	}
	ctx, cancel := r.s.p.within(patience)
	defer cancel()
	if err := r.s.forsake(ctx, r.s.connOf(r.e)); err != nil && time.Since(r.lost) < r.s.p.cfg.UpstreamTimeout {
		return false, err
	}
	ctx, cancel = r.s.p.within(patience)
	defer cancel()
	assigned, err := reclaim.Assigned(ctx, calls{r.s.p}, r.s.streamIdentity(), r.e.cmd, r.sent)
	r.doubt = err != nil || assigned
	return assigned, err
}

// turnedAway ends the read as answer says, and its session with it: the server does not let its user
// in any more, and who has been refused has to prove itself anew.
func (r *rearm) turnedAway(answer func()) {
	r.s.mu.Lock()
	r.s.gone = true // before the reader goes on with what stands behind the read
	r.s.mu.Unlock()
	answer()
	r.s.upstreamGone()
}

// sendOver makes c the read's connection.
func (r *rearm) sendOver(c *batcher.Conn, left time.Duration) bool {
	c.SetPatient(true)
	r.s.mu.Lock()
	r.e.conn = c
	r.e.recalled.Store(false)
	r.s.mu.Unlock()
	if r.send(left) {
		return true
	}
	c.Close()
	return false
}

// send sends the read over its connection, with what is left of its time.
func (r *rearm) send(left time.Duration) bool {
	r.began, r.sent = false, time.Now()
	return r.s.connOf(r.e).Submit(r, nil, rearmed(r.e.cmd, r.s.p.shortened(left)), 1) == nil
}

// left is what is left of the read's time, 0 if it has no end.
func (r *rearm) left() (left time.Duration, expired bool) {
	if r.deadline.IsZero() {
		return 0, false
	}
	left = time.Until(r.deadline)
	return left, left < time.Millisecond
}

// shortened is the BLOCK to be sent so that the server's null arrives here in time.
func (p *Proxy) shortened(block time.Duration) time.Duration {
	trip := p.handshakeTime()
	if block <= 0 || trip < time.Millisecond {
		return block
	}
	return max(block-trip, time.Millisecond)
}

// connOf is the connection that an exclusive command is on at the moment.
func (s *session) connOf(e *exclusive) *batcher.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.conn
}

// rearmed is a blocking read with another BLOCK.
func rearmed(cmd resp.Command, block time.Duration) []byte {
	pos, ms, ok := blockOption(cmd)
	if !ok || ms == block.Milliseconds() {
		return cmd.Raw
	}
	return replaceArg(cmd, pos, strconv.FormatInt(block.Milliseconds(), 10))
}

// null is how a blocking command ends that has found nothing.
func null(proto int) []byte {
	if proto >= 3 {
		return []byte("_\r\n")
	}
	return []byte("*-1\r\n")
}

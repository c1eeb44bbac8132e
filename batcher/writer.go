package batcher

import (
	"runtime"
	"syscall"
	"time"

	"streamproxy/internal/rawio"
	"streamproxy/internal/resp"
)

// undertake decides, with the lock held, what becomes of the queue. lead: the
// caller must write it, by calling lead after unlocking; arm: the caller must arm
// the timer with it after unlocking.
func (c *Conn) undertake() (lead bool, arm time.Duration) {
	if c.state == flushWriting {
		return false, 0 // whoever writes looks again before it stops
	}
	armed, due := c.state == flushWaiting, c.due
	if c.resolve() {
		c.alone = c.queued
		return true, 0
	}
	if armed && c.due >= due {
		return false, 0 // for the first byte, and never later
	}
	return false, c.left()
}

// resolve decides anew, with the lock held. It returns true if the caller has to
// write the queue after unlocking; else the timer has to, and c.left is its time.
func (c *Conn) resolve() (send bool) {
	d := c.decide()
	if !d.Send && c.hasTimer() {
		c.state, c.due = flushWaiting, d.At
		return false
	}
	c.state, c.reason = flushWriting, d.Reason
	return true
}

// hasTimer makes sure that there is a timer. Where no descriptor is left for one,
// what arrives during a write is still batched.
func (c *Conn) hasTimer() bool {
	if c.timer == nil {
		t, err := newTimer(c.timerFired)
		if err != nil {
			c.delayed = false
			return false
		}
		c.timer = t
	}
	return true
}

// newTimer can be made to fail by tests.
var newTimer = newWaiter

// left is how long the timer has to run.
func (c *Conn) left() time.Duration { return max(1, time.Duration(c.due-nanotime())) }

// decide asks the policy, with the lock held.
func (c *Conn) decide() Decision {
	if c.policy == nil || !c.delayed || c.status == dead {
		if c.inflight == 0 {
			return Decision{Send: true, Reason: FlushIdle}
		}
		return Decision{Send: true, Reason: FlushNobody}
	}
	now := nanotime()
	return c.policy.Decide(State{
		Now:         now,
		FirstQueued: c.first,
		Commands:    c.queued,
		Bytes:       len(c.out),
		InFlight:    c.inflight,
		IdleActive:  c.activity.IdleActive(now, int64(c.policy.ActiveWindow())),
	})
}

// timerFired is called when the flush delay may have passed. A timer that fires
// for a batch that has left meanwhile finds nothing to do.
func (c *Conn) timerFired() {
	c.mu.Lock()
	if c.state != flushWaiting {
		c.mu.Unlock()
		return
	}
	send, left := c.resolve(), c.left()
	c.mu.Unlock()
	if send {
		c.writeOnce()
		return
	}
	c.timer.Arm(left)
}

// lead writes the batch that the caller's command opened. It yields once before,
// so that every client whose command has already been read joins the batch; a session
// that has the connection to itself has nobody to wait for, nor has one to which that has
// turned out to bring nobody.
func (c *Conn) lead() {
	if c.shared.Load() && c.seats.Load() > 1 && c.yields.due() {
		c.yielded = true
		yield()
	}
	c.writeOnce()
}

// yield can be made to last by tests.
var yield = runtime.Gosched

// writeOnce writes one batch without blocking and hands over what is left, so
// that a client's reader never becomes everybody's writer.
func (c *Conn) writeOnce() {
	batch, ok := c.take()
	if !ok {
		return
	}
	n, err := c.tryWrite(batch)
	switch {
	case err != nil:
		c.writeFailed(batch, n, err)
	case n < len(batch):
		go c.drain(batch, n)
	case c.wrote(batch):
		go c.drain(nil, 0)
	}
}

// drain writes until the queue is empty or the policy says to wait, beginning with
// the rest of batch from byte n on. It may block: it is nobody's reader.
func (c *Conn) drain(batch []byte, n int) {
	for {
		if batch == nil {
			var ok bool
			if batch, ok = c.take(); !ok {
				return
			}
		}
		m, err := c.nc.Write(batch[n:])
		if err != nil {
			c.writeFailed(batch, n+m, err)
			return
		}
		if !c.wrote(batch) {
			return
		}
		batch, n = nil, 0
	}
}

// take empties the queue into a batch. It ends the writing and returns false when
// there is nothing to write or nowhere to write it to.
func (c *Conn) take() (batch []byte, ok bool) {
	c.mu.Lock()
	if len(c.out) == 0 || c.status == dead {
		c.state = flushIdle
		c.cond.Broadcast()
		c.mu.Unlock()
		return nil, false
	}
	batch, c.out, c.spare = c.out, c.spare[:0], nil
	commands := c.queued
	now := nanotime()
	if c.inflight == 0 {
		c.busySince.Store(now)
		c.writeFrom = now
	}
	reason := c.reason
	c.written += commands
	c.inflight += commands
	c.queued = 0
	waited := now - c.first
	if c.yielded {
		c.yielded = false
		c.yields.took(time.Duration(waited), commands > c.alone)
	}
	if len(batch) > maxQueued {
		c.cond.Broadcast()
	}
	c.mu.Unlock()
	if f := c.opts.Events.Flushed; f != nil {
		f(reason, commands, len(batch), time.Duration(waited))
	}
	return batch, true
}

// wrote ends the writing of a batch that was accepted whole. It returns true when
// the caller has to see to the next one.
func (c *Conn) wrote(batch []byte) (more bool) {
	c.mu.Lock()
	c.recycle(batch)
	if c.status == dead || len(c.out) == 0 {
		c.state = flushIdle
		c.cond.Broadcast()
		c.mu.Unlock()
		return false
	}
	send, left := c.resolve(), c.left()
	c.mu.Unlock()
	if !send {
		c.timer.Arm(left)
	}
	return send
}

// writeFailed ends the writing for good: of batch, the socket accepted n bytes.
func (c *Conn) writeFailed(batch []byte, n int, err error) {
	lost := 0
	if !c.opts.Opaque {
		lost = incomplete(batch, n)
	}
	c.mu.Lock()
	c.lost = lost
	c.state = flushIdle
	c.die(err) // in the same step: nothing may be written behind a torn command
	c.mu.Unlock()
	shutdown(c.nc)
}

// incomplete counts the commands of batch whose last byte lies beyond byte n. The
// one that straddles n counts: its connection is never continued, so the server
// cannot have read its end.
func incomplete(batch []byte, n int) int {
	scan := resp.NewCommandScanner(resp.Limits{MaxBulk: 1 << 62, MaxArgs: 1 << 40, MaxInline: 1 << 40})
	end, lost := 0, 0
	for end < len(batch) {
		m, done, err := scan.Scan(batch[end:])
		end += m
		if err != nil || !done {
			return lost + 1 // cannot be: only whole commands are queued
		}
		if end > n {
			lost++
		}
	}
	return lost
}

// tryWrite makes one attempt to write b without waiting, and says how much of it
// the socket accepted. A connection without a descriptor accepts nothing here.
func (c *Conn) tryWrite(b []byte) (int, error) {
	if c.rc == nil {
		return 0, nil
	}
	c.wbuf, c.wn, c.werr = b, 0, nil
	if err := c.rc.Write(c.wfn); err != nil {
		return 0, err
	}
	c.wbuf = nil
	return c.wn, c.werr
}

// writeReady is tryWrite's callback. It always says that it is done: a full socket
// is drain's business.
func (c *Conn) writeReady(fd uintptr) bool {
	for {
		n, err := rawio.Write(int(fd), c.wbuf)
		switch err {
		case nil:
			c.wn = n
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
		default:
			c.werr = err
		}
		return true
	}
}

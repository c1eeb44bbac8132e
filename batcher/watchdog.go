package batcher

import (
	"io"
	"time"
)

// endPause is how long nothing must have come before the end is looked for.
const endPause = 50 * time.Millisecond

// Overdue kills the connection if it owes a reply and has been silent for longer
// than Options.Timeout, and reports whether it did. A new command never resets
// that clock. Not counted: a command that may block, a body not yet complete, and
// time in which the reader waits for a client. A server that takes nothing of a body
// for as long is overdue too.
//
// In passing it looks, once after the last bytes, for an end of the stream that came
// together with them.
func (c *Conn) Overdue() bool {
	now := nanotime()
	c.lookForEnd(now)
	if c.opts.Timeout <= 0 || c.pacing.Load() || !c.silent(now) {
		return false
	}
	c.kill(errSilent)
	return true
}

// Silent reports whether nothing has come for d, though it would have been read.
func (c *Conn) Silent(d time.Duration) bool {
	return !c.pacing.Load() && time.Duration(nanotime()-c.lastRead.Load()) >= d
}

// GiveUp kills the connection if something is waited for on it and nothing has come for d,
// though it may be legal to wait so long, and reports whether it did. It is for when the
// server is known to be silent.
func (c *Conn) GiveUp(d time.Duration) bool {
	if !c.Silent(d) {
		return false
	}
	c.mu.Lock()
	waits := c.status != dead && (c.patient && c.inflight > 0 || c.raw != nil)
	c.mu.Unlock()
	if waits {
		c.kill(errSilent)
	}
	return waits
}

func (c *Conn) silent(now int64) bool {
	if since := c.writeSince.Load(); since != 0 && time.Duration(now-since) >= c.opts.Timeout {
		return true
	}
	since := c.busySince.Load()
	if since == 0 || time.Duration(now-since) < c.opts.Timeout {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.patient && !c.bodyOpen && c.raw == nil
}

func (c *Conn) lookForEnd(now int64) {
	last := c.lastRead.Load()
	if c.rc == nil || c.looked.Load() == last || time.Duration(now-last) < endPause {
		return
	}
	c.looked.Store(last)
	if Ended(c.rc) {
		c.kill(io.EOF)
	}
}

package batcher

import "time"

// Overdue kills the connection if it owes a reply and has been silent for longer
// than Options.Timeout, and reports whether it did. A new command never resets
// that clock. Not counted: a command that may block, a body not yet complete, and
// time in which the reader waits for a client.
func (c *Conn) Overdue() bool {
	since := c.busySince.Load()
	if since == 0 || c.opts.Timeout <= 0 || c.pacing.Load() {
		return false
	}
	if time.Duration(nanotime()-since) < c.opts.Timeout {
		return false
	}
	c.mu.Lock()
	exempt := c.patient || c.bodyOpen || c.raw != nil
	c.mu.Unlock()
	if exempt {
		return false
	}
	c.kill(errSilent)
	return true
}

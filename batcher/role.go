package batcher

import (
	"math"
	"time"
)

// A connection is a lane's, which many share, or private. It can change that when it owes nothing: one
// that is retired takes no more, and is somebody else's when it has answered.

// Retire makes the connection refuse new commands. It answers what it owes; then
// Options.Emptied is called. Retiring twice is harmless.
func (c *Conn) Retire() {
	c.mu.Lock()
	if c.status == live {
		c.status = retired
		c.cond.Broadcast()
	}
	empty := c.letGo()
	c.mu.Unlock()
	if empty {
		c.emptied()
	}
}

func (c *Conn) emptyLocked() bool {
	return c.fifo.num == 0 && c.inflight == 0 && c.queued == 0
}

// letGo reports, once for each retirement, that the connection owes nothing more.
// The lock is held.
func (c *Conn) letGo() bool {
	if c.status != retired || c.let || !c.emptyLocked() {
		return false
	}
	c.let = true
	return true
}

func (c *Conn) emptied() {
	if f := c.opts.Emptied; f != nil {
		f(c)
	}
}

// Retired reports whether the connection takes no new command, for whatever reason.
func (c *Conn) Retired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status != live
}

// Share turns an idle private connection into a lane's; it reports false if the
// connection is lost or has something in flight.
func (c *Conn) Share(policy PolicyConfig, rtt time.Duration) bool {
	p := NewPolicy(policy)
	if rtt > 0 {
		p.ObserveRoundTrip(nanotime(), rtt)
	}
	return c.recast("lane", p)
}

// Unshare turns an empty retired connection into an idle private one; it reports
// false if the connection is lost or still owes something.
func (c *Conn) Unshare() bool { return c.recast("private", nil) }

// Unshared is how long ago the connection was turned into a private one; very long if it never was.
func (c *Conn) Unshared() time.Duration {
	at := c.unshared.Load()
	if at == 0 {
		return math.MaxInt64
	}
	return time.Duration(nanotime() - at)
}

// recast gives an idle connection another role.
func (c *Conn) recast(kind string, policy *Policy) bool {
	c.mu.Lock()
	if c.status == dead || !c.emptyLocked() || c.raw != nil {
		c.mu.Unlock()
		return false
	}
	c.status, c.patient, c.let = live, false, false
	c.policy = policy
	c.shared.Store(policy != nil)
	c.delayed = policy != nil && policy.Delay() > 0
	c.activity.Reset()
	if policy == nil {
		c.slim()
		c.unshared.Store(nanotime())
	}
	c.epoch++
	c.seats.Store(0)
	old := c.kind
	c.kind = kind
	c.mu.Unlock()
	if f := c.opts.Events.Closed; f != nil {
		f(old)
	}
	if f := c.opts.Events.Opened; f != nil {
		f(kind)
	}
	return true
}

// StopDelaying makes every batch leave at once from now on.
func (c *Conn) StopDelaying() {
	c.mu.Lock()
	c.delayed = false
	c.policy = nil
	c.mu.Unlock()
}

package batcher

// A server is told to end what blocks on a connection by the connection's id, from another
// connection. Such a call hits whatever is there when it arrives, so nobody else may have
// the connection as long as one is on its way.

// Aim notes that a call which names the connection is about to be sent.
func (c *Conn) Aim() { c.aims.Add(1) }

// Landed notes that a call has been answered and has nothing more to hit. One that may
// still arrive, or that may have left something behind, never lands.
func (c *Conn) Landed() { c.aims.Add(-1) }

// Aimed reports whether a call may still hit the connection: it must not be used for
// anything else then.
func (c *Conn) Aimed() bool { return c.aims.Load() > 0 }

// Found notes that the server has shown this connection to another, in its own list: the
// two lead to the same run of the same server as long as both live, and the ids of
// connections mean the same there. One without a name is not remembered.
func (c *Conn) Found(by *Conn) {
	name := by.Name()
	c.found.Store(&name)
}

// FoundBy reports whether the last connection to find this one was by.
func (c *Conn) FoundBy(by *Conn) bool {
	name := c.found.Load()
	return name != nil && *name != "" && *name == by.Name()
}

package batcher

// A private connection serves one owner at a time, so it may carry what a shared
// one may not: a command that is not complete in memory, a command that blocks, a
// mode in which bytes are nobody's commands.

// OpenBody begins a command of sink whose bytes follow through WriteBody. The
// connection must be private and have nothing in flight.
func (c *Conn) OpenBody(sink Sink) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.state == flushWriting && c.status == live {
		c.cond.Wait() // the body before has been answered, and its writer is about to know
	}
	if err := c.refusal(nil); err != nil {
		return err
	}
	c.fifo.push(sink, nil, 1)
	c.written++
	c.inflight++
	c.lost = 1 // until its last byte has been accepted
	c.bodyOpen = true
	return nil
}

// WriteBody sends the next bytes of an open body, or of a raw connection, and
// blocks until the socket has taken them. last ends the body. After an error the
// connection is dead.
func (c *Conn) WriteBody(b []byte, last bool) error {
	c.mu.Lock()
	if c.status == dead {
		c.mu.Unlock()
		return ErrDead
	}
	c.state = flushWriting
	if last && c.opts.Opaque {
		c.lost = 0 // from here on its end may have been sent
	}
	c.mu.Unlock()
	c.writeSince.Store(nanotime())
	_, err := c.nc.Write(b)
	c.writeSince.Store(0)
	c.mu.Lock()
	// The reply may have come before the write call has returned, and with it the next
	// user of the connection, who leaves what he queues to whoever is writing.
	more := err == nil && len(c.out) > 0 && c.status == live
	if !more {
		c.state = flushIdle
	}
	if last && err == nil && c.bodyOpen {
		c.bodyOpen, c.lost = false, 0
		if c.inflight > 0 {
			c.busySince.Store(nanotime())
		}
	}
	if err != nil {
		c.die(err)
	}
	c.cond.Broadcast()
	c.mu.Unlock()
	if err != nil {
		shutdown(c.nc)
		return ErrDead
	}
	if more {
		go c.drain(nil, 0)
	}
	return nil
}

// SetRaw makes the connection sink's: from now on bytes pass in both directions
// without being framed. Nothing may be in flight. It cannot be undone; the
// connection ends with its client.
func (c *Conn) SetRaw(sink Sink) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == dead {
		return ErrDead
	}
	c.raw, c.owner = sink, sink
	return nil
}

// Raw reports whether SetRaw has given the connection away.
func (c *Conn) Raw() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw != nil
}

// SetOwner names a sink that is told, by Fail with n = 0, when the connection ends,
// whether or not something of it is in flight; nil: nobody any more. It is for
// connections on which the server keeps state for one client.
func (c *Conn) SetOwner(sink Sink) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == dead {
		return ErrDead
	}
	c.owner = sink
	return nil
}

// SetPatient says whether the silence of this connection is legal, because what is
// in flight on it may block at the server's end.
func (c *Conn) SetPatient(patient bool) {
	c.mu.Lock()
	c.patient = patient
	c.mu.Unlock()
}

// CloseWrite ends the sending direction: the server reads to the end and closes,
// so that a reply on its way is not lost by a reset.
func (c *Conn) CloseWrite() error {
	if h, ok := c.nc.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.nc.Close()
}

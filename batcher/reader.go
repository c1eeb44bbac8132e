package batcher

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"streamproxy/internal/rawio"
)

// readChunk is how much is read at once. Its buffers are held only while there is
// something to read, so that idle connections cost none.
const readChunk = 64 << 10

var readBuffers = sync.Pool{New: func() any { return new([readChunk]byte) }}

// read is the connection's reader. It ends with the socket, and then settles what
// is left.
func (c *Conn) read() {
	if c.rc != nil {
		// The callback returns only to wait for more. Processing inside it spares one
		// read per chunk that would only say EAGAIN: the poller is edge-triggered, and
		// a read that filled less than its buffer has emptied the socket.
		err := c.rc.Read(c.readReady)
		if errors.Is(err, os.ErrDeadlineExceeded) { // woken by kill: what has come still counts
			_ = c.nc.SetReadDeadline(time.Time{})
			err = c.rc.Read(func(fd uintptr) bool { c.readReady(fd); return true })
		}
		if c.readErr == nil {
			c.readErr = err
		}
	} else {
		c.readErr = c.readPlain()
	}
	c.finish()
}

func (c *Conn) readReady(fd uintptr) (done bool) {
	buf := readBuffers.Get().(*[readChunk]byte)
	defer readBuffers.Put(buf)
	for {
		n, err := rawio.Read(int(fd), buf[:])
		switch {
		case err == syscall.EAGAIN:
			return false
		case err == syscall.EINTR:
			continue
		case err != nil:
			c.readErr = err
			return true
		case n == 0:
			c.readErr = io.EOF
			return true
		}
		if c.readErr = c.consume(buf[:n]); c.readErr != nil {
			return true
		}
		// The end of the stream may stand right behind the last byte, in the same event
		// of the poller. Where somebody waits for more that has to be seen now; else the
		// watchdog sees it.
		if n < len(buf) && !c.owing {
			return false
		}
	}
}

// consume deals out one chunk of replies and then lets every owner flush.
func (c *Conn) consume(b []byte) error {
	raw := c.noteChunk()
	if raw != nil {
		c.owing = true
		return c.pass(raw, b)
	}
	err := c.dispatch(b)
	c.settle()
	for i, s := range c.touched {
		s.Flush()
		c.touched[i] = nil
	}
	c.touched = c.touched[:0]
	if err == nil {
		c.pace()
	}
	return err
}

// noteChunk keeps the watchdog's clock and takes the round-trip sample.
func (c *Conn) noteChunk() (raw Sink) {
	now := nanotime()
	c.lastRead.Store(now)
	if c.busySince.Load() != 0 {
		c.busySince.Store(now)
	}
	c.mu.Lock()
	raw = c.raw
	sample := c.writeFrom
	c.writeFrom = 0
	var rtt, delay time.Duration
	changed := false
	if sample != 0 {
		rtt = time.Duration(now - sample)
		if c.policy != nil && c.policy.ObserveRoundTrip(now, rtt) {
			changed = true
			delay = c.policy.Delay()
			c.delayed = delay > 0
		}
	}
	c.mu.Unlock()
	c.trip = rtt
	if sample != 0 {
		if f := c.opts.Events.RoundTrip; f != nil {
			f(rtt)
		}
		if f := c.opts.Events.DelayChosen; f != nil && changed {
			f(delay)
		}
	}
	return raw
}

// dispatch frames b and hands each stretch of replies to its owner.
func (c *Conn) dispatch(b []byte) error {
	for len(b) > 0 {
		if !c.within && b[0] == '>' {
			c.inPush = true
		}
		if c.inPush {
			n, done, err := c.scan.Scan(b)
			if err != nil {
				return errProtocol
			}
			c.within = !done
			c.push(b[:n], done)
			b = b[n:]
			continue
		}
		if c.cur.n == 0 && !c.next() {
			return errProtocol // a reply that nobody asked for
		}
		n, err := c.deliver(b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// push collects a push frame and delivers it when it is complete.
func (c *Conn) push(part []byte, done bool) {
	if c.opts.Pushed != nil {
		c.pushed = append(c.pushed, part...)
	}
	if !done {
		return
	}
	c.inPush = false
	if c.opts.Pushed != nil {
		c.opts.Pushed(c.pushed)
		c.pushed = c.pushed[:0]
	} else if f := c.opts.Events.PushDropped; f != nil {
		f()
	}
}

// deliver frames as many replies of the current run as b holds and hands them over
// in one call. It stops before a push.
func (c *Conn) deliver(b []byte) (n int, err error) {
	done, open := 0, 0
	for n < len(b) && done < c.cur.n {
		if !c.within && b[n] == '>' {
			break
		}
		m, complete, err := c.scan.Scan(b[n:])
		if err != nil {
			return 0, errProtocol
		}
		n += m
		c.within = !complete
		if !complete {
			open = int(c.scan.Size())
			break
		}
		done++
	}
	if n == 0 {
		return 0, nil
	}
	c.cur.n -= done
	c.answers += done
	c.got += int64(n)
	c.had += int64(done)
	if c.trip > 0 {
		if t, ok := c.cur.sink.(Timed); ok {
			t.Trip(c.trip)
		}
		c.trip = 0
	}
	c.cur.sink.Reply(b[:n], done, open)
	c.touch(c.cur.sink)
	return n, nil
}

func (c *Conn) touch(s Sink) {
	if k := len(c.touched); k == 0 || c.touched[k-1] != s {
		c.touched = append(c.touched, s)
	}
}

// next takes the next run whose batch has been handed to the socket.
func (c *Conn) next() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account()
	if c.written == 0 {
		return false
	}
	c.cur, c.got, c.had = c.fifo.pop(c.written), 0, 0
	c.written -= c.cur.n
	return true
}

// account books the replies completed since the lock was last held.
func (c *Conn) account() {
	if c.answers == 0 {
		return
	}
	c.inflight -= c.answers
	if c.delayed && c.cur.member != nil {
		c.activity.Answered(c.cur.member, c.answers)
	}
	c.answers = 0
}

// settle ends a chunk: nothing owed stops the watchdog's clock, and lets a retired
// connection and a batch that waited for company go.
func (c *Conn) settle() {
	c.mu.Lock()
	c.account()
	c.owing = c.inflight > 0
	if !c.owing && c.status != dead {
		c.busySince.Store(0)
	}
	send := c.state == flushWaiting && c.resolve()
	empty := c.letGo()
	c.mu.Unlock()
	if send {
		c.writeOnce()
	}
	if empty {
		c.emptied()
	}
}

// pace ends a chunk of which the present owner gets more: it is not outrun where nobody
// waits behind it, and much of it retires a shared connection.
func (c *Conn) pace() {
	giant := !c.inPush && c.within && max(c.scan.Size(), c.scan.Announced()) >= giantReply
	shared := c.shared.Load()
	switch {
	case giant:
	case c.cur.n == 0, shared && c.expected() < giantRun:
		return
	}
	others := false
	if shared {
		c.Retire()
		c.mu.Lock()
		others = c.fifo.others(c.cur.sink)
		c.mu.Unlock()
	}
	limit, stall := int64(giantReply), time.Duration(0)
	switch {
	case others && !giant: // a client that is slow to take many replies is no reason to end it
		return
	case others:
		// The patience is the connection's: who waits behind five such clients does not
		// wait five times as long.
		limit, stall = giantBuffered, max(giantStall-c.stalled, giantLeastStall)
	}
	c.pacing.Store(true)
	began := nanotime()
	if !c.cur.sink.Pace(limit, stall) { // its client is gone, the rest is dropped there
		c.stalled += time.Duration(nanotime() - began)
	}
	c.resumed()
}

// expected is how many bytes the present owner is likely to get still, judged by those of
// its replies that have come.
func (c *Conn) expected() int64 {
	if c.had == 0 {
		return 0
	}
	return c.got / c.had * int64(c.cur.n)
}

// resumed ends a time in which it was not upstream's fault that nothing was read.
func (c *Conn) resumed() {
	if c.busySince.Load() != 0 {
		c.busySince.Store(nanotime())
	}
	c.pacing.Store(false)
}

// pass hands over the bytes of a raw connection at its client's pace.
func (c *Conn) pass(raw Sink, b []byte) error {
	raw.Reply(b, 0, 0)
	raw.Flush()
	c.pacing.Store(true)
	defer c.resumed()
	if !raw.Pace(giantReply, 0) {
		return io.ErrClosedPipe
	}
	return nil
}

// finish settles a connection whose socket has ended: it waits for the last write
// call, and then fails every command that was taken, in order.
func (c *Conn) finish() {
	c.kill(c.readErr)
	_ = c.nc.Close() // the error of closing a lost connection says nothing
	c.mu.Lock()
	for c.state == flushWriting {
		c.cond.Wait()
	}
	c.account()
	owner, cause, kind := c.owner, c.cause, c.kind
	unknown := c.cur.n + c.written - c.lost
	left := c.fifo
	c.fifo, c.out, c.spare, c.queued, c.written, c.inflight = runs{}, nil, nil, 0, 0, 0
	timer := c.timer
	c.mu.Unlock()
	c.busySince.Store(0)
	if timer != nil {
		timer.Close()
	}
	if c.cur.n > 0 {
		unknown = fail(c.cur, unknown)
	}
	for left.num > 0 {
		unknown = fail(left.pop(1<<62), unknown)
	}
	if owner != nil {
		owner.Fail(0, ErrUnknown)
	}
	c.report(kind, cause)
	close(c.done)
	if f := c.opts.Closed; f != nil {
		f(c)
	}
}

// fail tells the owner of r that its first unknown commands have an unknown
// outcome and the others were not sent; it returns what is left of unknown.
func fail(r run, unknown int) int {
	u := min(r.n, max(unknown, 0))
	unknown -= u
	u -= denied(u)
	if u > 0 {
		r.sink.Fail(u, ErrUnknown)
	}
	if r.n > u {
		r.sink.Fail(r.n-u, ErrNotSent)
	}
	r.sink.Flush()
	return unknown
}

// report tells the observer how the connection ended.
func (c *Conn) report(kind string, cause error) {
	if f := c.opts.Events.Closed; f != nil {
		f(kind)
	}
	reason := "read"
	switch {
	case errors.Is(cause, errClosed):
		return
	case errors.Is(cause, io.EOF), errors.Is(cause, io.ErrUnexpectedEOF): // the latter is TLS's
		reason = "eof"
	case errors.Is(cause, errProtocol):
		reason = "protocol"
	case errors.Is(cause, errSilent):
		reason = "timeout"
	case errors.Is(cause, syscall.EPIPE), errors.Is(cause, syscall.ECONNRESET):
		reason = "write"
	}
	if f := c.opts.Events.Failed; f != nil {
		f(reason)
	}
}

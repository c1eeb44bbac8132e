package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"

	"streamproxy/internal/rawio"
)

const (
	// heldInput is how many bytes of further commands are read ahead while a command
	// on a private connection is under way. More stay in the client's socket.
	heldInput = 64 << 10
	// moreInput is the same as long as all clients together have little in buffers: a long
	// pipeline travels so much at a time, and over a far link that is its speed.
	moreInput = 256 << 10
	// fewBuffers is how much little is.
	fewBuffers = 16 << 20
)

// past is a deadline that has passed: it wakes a reader that waits for its client.
var past = time.Unix(1, 0)

// intake reads the client until its connection ends or the session does.
func (s *session) intake() {
	s.setIdleDeadline() // which may have taken back a wake-up
	if s.rc != nil {    // else it has been since the handshake
		s.p.partings.watch(s)
	}
	s.sayGoodbye()
	if s.upstreamEnded() || s.cutOff() {
		return
	}
	for !s.ending {
		var err error
		if s.rc != nil {
			// As in batcher: working inside the callback spares the read that would only
			// say EAGAIN.
			err = s.rc.Read(s.readReady)
		} else {
			err = s.readPlain()
		}
		switch {
		case s.readEOF:
			s.runHeld()
			return
		case s.ending || s.readErr != nil:
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			if !s.woken() {
				s.p.met(LimitIdle, "closed: said nothing", "client", s.remote(), "timeout", s.p.cfg.ClientIdleTimeout)
				s.readErr = err
				return
			}
		case err != nil:
			s.readErr = err
			return
		}
	}
}

// woken handles a deadline that has passed: mostly somebody has something for the
// reader. It returns false if it was the client's idle time. The deadline is taken
// back before the reader looks what there is, so that no wake-up is lost.
func (s *session) woken() bool {
	idle := s.idleExpired()
	s.setIdleDeadline()
	s.sayGoodbye()
	if s.upstreamEnded() || s.cutOff() {
		return true
	}
	if !idle {
		s.resume()
	}
	return !idle
}

// cutOff reports whether somebody has ended the connection, and ends the reading then:
// taking the deadline back has taken back the wake-up too, and there may be bytes left
// to read before an end that no event will tell of again.
func (s *session) cutOff() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.readErr, s.ending = net.ErrClosed, true
	}
	return s.closed
}

// setIdleDeadline arms --client-idle-timeout, or takes back the deadline by which
// the reader was woken.
func (s *session) setIdleDeadline() {
	var at time.Time
	if d := s.p.cfg.ClientIdleTimeout; d > 0 {
		if at = time.Unix(0, s.lastCmd.Load()).Add(d); time.Until(at) <= 0 {
			at = time.Now().Add(d)
		}
	}
	_ = s.nc.SetReadDeadline(at) // a connection that refuses is closed; the read says so
}

// wakeReader has the reader look again, by a deadline that has passed.
func (s *session) wakeReader() {
	_ = s.nc.SetReadDeadline(past) // a closed connection needs no waking
}

// idleExpired tells a deadline that passed from a wake-up.
func (s *session) idleExpired() bool {
	d := s.p.cfg.ClientIdleTimeout
	if d <= 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.busy && s.outstanding == 0 && !s.suspended && s.pinned == nil &&
		time.Since(time.Unix(0, s.lastCmd.Load())) >= d
}

// readReady reads and executes until the socket is empty. It returns true to end
// the reading and false to wait for more.
func (s *session) readReady(fd uintptr) (done bool) {
	s.parked.Store(false)
	for {
		if s.full() {
			if s.readAhead(int(fd)) {
				continue
			}
			return s.ending || s.readErr != nil || s.readEOF
		}
		if s.ahead.size > 0 { // the command before it has just ended
			s.catchUp()
			if s.ending {
				return true
			}
			continue
		}
		if s.squeezed() {
			return s.hungUp(peerReset(int(fd)))
		}
		if s.readChunk(int(fd)) {
			if s.cutOff() {
				return true // what a client sent that has gone may be megabytes
			}
			// There is more, of a client that may never pause. It has had a turn; without
			// this it would have the processor until the scheduler takes it away, for ten
			// milliseconds, and so would each of its kind.
			runtime.Gosched()
			continue
		}
		if s.ending || s.readErr != nil || s.readEOF {
			return true
		}
		s.park()
		return false
	}
}

// readChunk reads once, executes what that brought, and reports whether to read again
// at once.
func (s *session) readChunk(fd int) (again bool) {
	c := s.takeChunk()
	defer s.p.putChunk(c)
	at := s.lift(c)
	if n := s.readInto(fd, c.b[at:]); n > 0 {
		s.feed(c.b[:at+n])
		return !s.ending && (at+n == len(c.b) || s.left.Load())
	}
	if at > 0 {
		s.keep(c.b[:at])
	}
	return false
}

// readInto reads once and returns how much there was. It notes the connection's end.
func (s *session) readInto(fd int, b []byte) int {
	n, err := rawio.Read(fd, b)
	for err == syscall.EINTR {
		n, err = rawio.Read(fd, b)
	}
	switch {
	case err == nil && n > 0:
		s.received(n)
		return n
	case err == nil:
		s.readEOF = true
	case err != syscall.EAGAIN:
		s.readErr = err
	}
	return 0
}

// lift moves a few bytes that are left from before to the beginning of a chunk, and
// returns how many: what is read behind them is then executed where it is. More than a
// few stay where they are, and feed puts what is read behind them.
func (s *session) lift(c *chunk) (n int) {
	if s.in == nil || len(s.in.b) > len(c.b)/8 {
		return 0
	}
	n = copy(c.b, s.in.b)
	s.in.releaseFitting()
	s.in = nil
	return n
}

// leaving notes that the client has ended the connection, and has the reader read up to
// that end: a reader that is reading at this moment looks at the note, or is woken when
// it waits.
func (s *session) leaving() {
	s.mu.Lock()
	s.left.Store(true)
	s.hurry()
	s.cond.Broadcast() // see pause
	resign := s.resign
	s.mu.Unlock()
	if resign != nil && s.isReset() {
		resign()
	}
	if s.rc != nil { // others read until there is nothing left
		s.wakeReader()
	}
}

// full reports whether no more may be read for now.
func (s *session) full() bool {
	return s.in != nil && len(s.in.b) >= heldInput &&
		(len(s.in.b) >= moreInput || s.p.inBuffers() > fewBuffers) && s.held()
}

// held reports whether commands wait for a private connection's reply; if so, that
// reply will wake the reader.
func (s *session) held() bool {
	if !s.wasBusy {
		return false
	}
	s.mu.Lock()
	s.suspended = s.busy
	s.wasBusy = s.busy
	reset, busy := s.wasReset, s.busy
	s.ending = s.ending || s.torn || s.departed
	s.wasReset = false
	if reset {
		s.resetting = false
	}
	if !busy {
		s.takeNote()
	}
	s.mu.Unlock()
	if reset && s.pinned != nil {
		s.afterReset()
	}
	return busy
}

// givenUp reports whether the client of a connection that is not read from is gone, though
// there may be bytes left to read before its end. Under a command that may block the end of
// its sending direction may be enough, as at Redis, see farewell.go; any other is answered
// first, and then the rest of what was sent.
func (s *session) givenUp(fd int) bool {
	s.mu.Lock()
	blocks := s.blocks()
	s.mu.Unlock()
	if blocks && peerClosed(fd) {
		s.bidFarewell()
	}
	return s.forsaken() || peerReset(fd)
}

// blocks reports whether a command that may block is under way. The lock is held.
func (s *session) blocks() bool { return s.active != nil && s.active.patient }

// hungUp notes the end of a connection that is not read from. It returns true if the
// client is gone.
func (s *session) hungUp(gone bool) bool {
	if gone {
		s.readErr = io.EOF
	}
	return s.readErr != nil
}

// rawConn is the client's, under TLS the one below; nil where there is none.
func (s *session) rawConn() syscall.RawConn {
	if s.rc != nil {
		return s.rc
	}
	return s.below
}

// isReset reports whether the client has reset its connection, as far as that is known.
func (s *session) isReset() bool {
	rc := s.rawConn()
	return rc != nil && isReset(rc)
}

func isReset(rc syscall.RawConn) (gone bool) {
	return rc.Control(func(fd uintptr) { gone = peerReset(int(fd)) }) == nil && gone
}

// park notes that the reader is about to wait for its client, everything that it has
// read being executed. It looks for the end of a failed pipeline after that: whoever
// brings the last reply of it looks too, and one of the two sees it.
func (s *session) park() {
	done := s.in == nil && s.body == nil
	if done {
		s.scan.Trim()
	}
	s.parked.Store(done)
	s.dry()
}

// dry looks whether the client's socket has been read empty. If then nothing is
// outstanding, the pipeline in which a command failed is over.
func (s *session) dry() {
	if !s.poisoned.Load() || s.in != nil || s.body != nil || s.pending() {
		return
	}
	s.mu.Lock()
	if s.outstanding == 0 {
		s.poisoned.Store(false)
	}
	s.mu.Unlock()
}

// pending reports whether the client has sent bytes that were not read yet.
func (s *session) pending() (some bool) {
	rc := s.rawConn()
	if rc == nil {
		return false
	}
	err := rc.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		some = n > 0 && err == nil
	})
	return some && err == nil
}

// runHeld executes what is held when the client has ended its sending direction. What
// stands behind a command that is blocked is not: its client is taken for gone.
func (s *session) runHeld() {
	for s.unexecuted() > 0 && !s.ending && s.awaitFree() {
		before := s.unexecuted()
		s.resume()
		if s.unexecuted() == before {
			return // an incomplete command
		}
	}
}

// awaitFree waits for the end of the private command under way.
func (s *session) awaitFree() bool {
	s.flushLocal()
	s.endReset()
	last := s.lastBlocking()
	s.mu.Lock()
	s.waitProgress(func() bool { return !s.busy || s.abandoned() }, 0)
	free := !s.busy && !s.closed && !s.departed
	s.mu.Unlock()
	if free {
		s.seeTaken(last)
	}
	return free
}

// resume executes what was held while a private connection was busy.
func (s *session) resume() {
	if !s.full() {
		s.stepAside() // what follows may wait for long
	}
	s.feed(nil)
	s.catchUp()
}

func (s *session) received(n int) {
	if f := s.p.cfg.Events.Received; f != nil {
		f(n)
	}
}

// feed executes what b, after what is left from before, completes.
func (s *session) feed(b []byte) {
	s.working.Store(true)
	defer s.working.Store(false)
	if !s.poisoned.Load() {
		s.reason = nil
	}
	if s.in != nil {
		s.extend(b)
		b = s.in.b
	}
	s.portion = s.portionNow()
	n := 0
	for n < len(b) && (s.body != nil || !s.held()) && !s.ending {
		m := s.execute(b[n:])
		if m == 0 {
			break
		}
		n += m
	}
	s.keep(b[n:])
	s.dry() // before the client hears of a failure, see endFailure
	s.flushLocal()
}

// extend puts b behind what is left from before.
func (s *session) extend(b []byte) {
	if len(b) > len(s.in.b) && len(b)+len(s.in.b) > cap(s.in.b) {
		grown := takeBuffer() // mostly one that has grown before
		grown.b = append(append(grown.b, s.in.b...), b...)
		s.in.releaseFitting()
		s.in = grown
	} else {
		s.in.b = append(s.in.b, b...)
	}
	s.noteHeld(s.holding()) // it may have to wait now
}

// flushLocal sends what has been collected for the server, and local answers that wait for nobody.
func (s *session) flushLocal() {
	if c := s.collecting; c != nil {
		s.collecting = nil
		c.Push()
	}
	if s.local > 0 {
		s.local = 0
		s.flush()
	}
}

// keep holds on to bytes that are not executed yet, in a buffer that is not much larger.
func (s *session) keep(rest []byte) {
	old := s.in
	switch {
	case len(rest) == 0:
		s.in = nil
	case old != nil && cap(old.b) <= max(2*len(rest), bufferSize):
		old.b = old.b[:copy(old.b, rest)]
		s.noteHeld(s.holding())
		return
	default:
		s.in = takeFitting(len(rest))
		s.in.b = append(s.in.b, rest...)
	}
	if old != nil {
		old.releaseFitting()
	}
	s.noteHeld(s.holding())
}

// holding is how many bytes the reader has in memory of what is not executed yet: themselves, and
// where the arguments lie in them.
func (s *session) holding() int {
	switch {
	case s.in != nil:
		return cap(s.in.b) + s.scan.Extra() + s.ahead.size
	case s.body != nil: // they have been looked at, and stay until its end
		return s.scan.Extra() + s.ahead.size
	}
	return s.ahead.size
}

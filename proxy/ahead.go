package proxy

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A client may send on while a command of its blocks, and leave. Its end then stands behind what it
// has sent: as long as our kernel has no room for that, it has not even come, and nothing tells of
// it. The server reads on and finds it. So the proxy reads on too under a command that may last for
// ever, far beyond what it reads ahead otherwise. What comes is kept as it is, and executed when the
// command has ended. One client may have as much kept as it may owe, and no more than a quarter of
// the memory limit. When half of that limit is in use they read on one at a time, until memory is
// close to it: of those who have left, each gives back what it holds when its end is found. Who has
// sent more than may be kept stays unread, and unnoticed if it leaves without a reset.
//
// Many commands that may block do not, because they find what they want: behind those nothing more is
// read. And a client that owes reading is known to have left by the reset with which its kernel
// answers what is sent to it.

// aheadAfter is how long a command has to be under way before more is read behind it, and after how
// long a client that owes reading is looked at again.
const aheadAfter = time.Second

// mayLast reports whether what the reader waits for may never come by itself, and how long it is left
// alone before it is taken for such.
func (s *session) mayLast() (may bool, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.busy || !s.resetting && !s.blocks():
		return false, 0
	case s.unsent() > 0:
		return true, aheadAfter
	}
	return true, aheadAfter - time.Since(s.since)
}

// mayRead reports whether the reader, which holds much, is to read on.
func (s *session) mayRead() bool {
	may, wait := s.mayLast()
	if may && wait <= 0 {
		return s.roomAhead()
	}
	s.stepAside()
	if may {
		s.lookAgain(wait)
	}
	return false
}

// lookAgain wakes the reader after that time.
func (s *session) lookAgain(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alarm == nil {
		s.alarm = time.AfterFunc(after, s.wakeReader)
		return
	}
	s.alarm.Reset(after)
}

// sleepOn ends that.
func (s *session) sleepOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alarm != nil {
		s.alarm.Stop()
	}
}

// roomAhead reports whether the reader may keep more behind what it holds. If it has to wait for
// others, or for room, it is woken.
func (s *session) roomAhead() bool {
	if int64(s.ahead.size) >= s.p.maxAhead() {
		s.stepAside()
		return false // only the end of the command changes that
	}
	if !s.p.halfFull() {
		return true
	}
	s.lined = true
	return s.p.porch.turn(s, s.p.crowded)
}

func (p *Proxy) maxAhead() int64 {
	if limit := p.cfg.MemoryLimit; limit > 0 {
		return min(limit/4, p.cfg.ClientBufferLimit)
	}
	return p.cfg.ClientBufferLimit
}

// stepAside lets the next one read on.
func (s *session) stepAside() {
	if s.lined {
		s.lined = false
		s.p.porch.leave(s)
	}
}

// porch is a line of readers of which only the first may go on, if there is room for it.
type porch struct {
	lobby
	stuck atomic.Bool // there was none
}

// turn puts s into the line, and reports whether it may go on now.
func (l *porch) turn(s *session, full func() bool) bool {
	l.enter(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.line.Front().Value != s {
		return false
	}
	l.stuck.Store(full())
	if l.stuck.Load() && !full() { // room was made before it was known to wait
		l.stuck.Store(false)
	}
	return !l.stuck.Load()
}

// leave takes s out of the line, and tells who is the first then.
func (l *porch) leave(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.at[s] != nil && l.at[s] == l.line.Front()
	l.drop(s)
	if first {
		l.tell()
	}
}

// makeRoom tells the first one of room, if it has waited for that.
func (l *porch) makeRoom() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell()
}

// tell wakes the first one. The lock is held.
func (l *porch) tell() {
	l.stuck.Store(false)
	if first := l.line.Front(); first != nil {
		first.Value.(*session).wakeReader()
	}
}

// readAhead reads once of what stands behind the command under way, and reports whether to go on
// reading. If not, the client is gone, or the reader waits for more, or for the command's end.
func (s *session) readAhead(fd int) (again bool) {
	if s.hungUp(s.givenUp(fd)) || !s.mayRead() {
		return false
	}
	c := s.p.takeChunk()
	defer s.p.putChunk(c)
	n := s.readInto(fd, c.b)
	if n > 0 {
		s.putAhead(c.b[:n])
	}
	if n > 0 && !s.ending && (n == len(c.b) || s.left.Load()) {
		return true
	}
	s.stepAside() // it has no more, for now
	return false
}

// accept executes what was read, or keeps it if it has to wait.
func (s *session) accept(b []byte) {
	if s.ahead.size == 0 && !s.full() {
		s.feed(b)
		return
	}
	s.putAhead(b)
	s.catchUp()
}

func (s *session) putAhead(b []byte) {
	s.ahead.add(b)
	s.noteHeld(s.holding())
}

// catchUp executes what is kept, as far as nothing has to be waited for.
func (s *session) catchUp() {
	for s.ahead.size > 0 && !s.ending && !s.full() {
		piece := s.ahead.take(0)
		s.feed(piece.b)
		piece.release()
		if s.cutOff() {
			return
		}
		runtime.Gosched() // as behind each chunk that is read
	}
}

// unexecuted is how many bytes have been read and not executed.
func (s *session) unexecuted() (n int) {
	if s.in != nil {
		n = len(s.in.b)
	}
	return n + s.ahead.size
}

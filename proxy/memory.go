package proxy

import (
	"container/list"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidwall/redcon"
)

// What the proxy holds for clients is bounded by --memory-limit. Below it a client that owes
// reading is not read from, and the others in small pieces. At it, who has sent a part of a
// command waits with the rest, and the greediest are refused until there is room. Their memory
// comes back when their readers have seen that: until then it counts, and nobody else is refused
// in its place.

// overfull reports whether no more is to be read of commands that are not whole.
func (p *Proxy) overfull() bool {
	limit := p.memoryLimit()
	return limit > 0 && p.inBuffers() > limit
}

// halfFull reports whether those who have sent much behind commands that block have to take turns.
func (p *Proxy) halfFull() bool {
	limit := p.memoryLimit()
	return limit > 0 && p.inBuffers() > limit/2
}

// crowded reports whether the proxy's buffers are close to the memory limit: then
// clients that owe reading are not read from, and the others in small pieces.
func (p *Proxy) crowded() bool {
	limit := p.memoryLimit()
	return limit > 0 && p.inBuffers() > limit-limit/8
}

// flooded reports whether so much is about to be dropped by readers of closed sessions that
// nobody is read from before: where thousands send at a time, each of them would bring a little
// before the first has gone.
func (p *Proxy) flooded() bool {
	limit := p.memoryLimit()
	return limit > 0 && p.dropping.Load() > limit/4
}

// inBuffers is how many bytes the proxy holds for clients: what they have not taken, not
// ended, or what waits in the hands of their readers, what they have said of themselves, and what
// is known of the streams that they read.
func (p *Proxy) inBuffers() int64 {
	return p.buffered.Load() + p.inHand.Load() + p.remembered()
}

// remembered is how many of them no refusal gives back.
func (p *Proxy) remembered() int64 {
	n := p.names.bytes.Load() + p.logins.bytes.Load()
	if p.streams != nil {
		n += p.streams.Bytes()
	}
	return n
}

// excess is by how much the buffers are over limit, less what is about to be given back.
func (p *Proxy) excess(limit int64) int64 { return p.inBuffers() - p.ceded.Load() - limit }

// shed ends the greediest clients while the proxy is over its memory limit. Whoever brings
// replies calls it too, and whoever is about to read: what a server or clients can send until the
// next round of the sweeper is more than a limit could allow for. Looking for the greediest takes
// a while, so it makes some room at once.
func (p *Proxy) shed() {
	limit := p.memoryLimit()
	if limit <= 0 || p.excess(limit) <= 0 || !p.shedding.TryLock() {
		return
	}
	defer p.shedding.Unlock()
	type debtor struct {
		s    *session
		owes int64
	}
	var debtors []debtor
	for _, s := range p.sessions.all() {
		s.mu.Lock()
		if !s.closed && s.charged > 0 {
			debtors = append(debtors, debtor{s, s.charged})
		}
		s.mu.Unlock()
	}
	slices.SortFunc(debtors, func(a, b debtor) int { return int(b.owes - a.owes) })
	for _, d := range debtors {
		if p.excess(limit-limit/16) <= 0 {
			return
		}
		p.met(LimitMemory, "closed: owed most", "client", d.s.remote(), "bytes", d.owes)
		d.s.refuseMemory()
	}
}

// refuseMemory ends a session for the sake of the others, with an error if it can
// still be told.
func (s *session) refuseMemory() {
	s.mu.Lock()
	if !s.writing && s.out.size == 0 && !s.closed {
		s.append(redcon.AppendError(nil, textMemory))
	}
	s.mu.Unlock()
	s.flush()
	s.abort()
}

// squeezed reports whether the reader has to wait before it reads more, because it holds a
// part of a command already and all together hold too much, or have held. It is
// woken when there is room.
func (s *session) squeezed() bool {
	if !s.p.overfull() {
		return false
	}
	s.p.shed()
	if s.in == nil && !s.p.flooded() {
		return false
	}
	s.p.lobby.enter(s)
	if s.p.overfull() || s.p.flooded() {
		return true
	}
	s.p.lobby.leave(s) // room was made before it stood there
	return false
}

// makeRoom wakes the reader that has waited longest for room, if there is some. The next one
// is woken when that one has read.
func (p *Proxy) makeRoom() {
	if p.lobby.waiting.Load() > 0 && !p.overfull() && !p.flooded() {
		p.lobby.wake()
	}
	if p.porch.stuck.Load() && !p.crowded() {
		p.porch.makeRoom()
	}
}

// lobby is where readers wait for room in memory, in the order in which they came.
type lobby struct {
	waiting atomic.Int64 // how many

	mu   sync.Mutex
	line list.List                  // of *session
	at   map[*session]*list.Element // their places
}

func (l *lobby) enter(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at[s] != nil {
		return
	}
	if l.at == nil {
		l.at = map[*session]*list.Element{}
	}
	l.at[s] = l.line.PushBack(s)
	l.waiting.Add(1)
}

func (l *lobby) leave(s *session) {
	if l.waiting.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(s)
}

// wake lets the first one out.
func (l *lobby) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.line.Front(); first != nil {
		s := first.Value.(*session)
		l.drop(s)
		s.wakeReader()
	}
}

// drop takes s out. The lock is held.
func (l *lobby) drop(s *session) {
	if e := l.at[s]; e != nil {
		l.line.Remove(e)
		delete(l.at, s)
		l.waiting.Add(-1)
	}
}

// noteHeld tells the proxy how much the reader holds of what is not executed yet. A session that
// has been closed meanwhile, for holding so much perhaps, reads no more.
func (s *session) noteHeld(n int) {
	if s.holds == int64(n) { // nobody else sets it
		return
	}
	s.mu.Lock()
	s.holds = int64(n)
	s.charge()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		s.readErr, s.ending = net.ErrClosed, true
	}
}

// stays is how many bytes the session takes beside what is kept for its client: what was read, and
// waits for more, or for the server. The lock is held.
func (s *session) stays() int64 { return s.holds + s.awaits + s.sealed }

// charge tells the proxy how much this session holds. It is called where a client
// has proved slow in either direction, not for every command. The lock is held.
func (s *session) charge() {
	now, ceded, dropping := s.takes()+s.stays(), int64(0), int64(0)
	if s.closed { // its replies are dropped, and its reader is about to drop the rest
		now, ceded, dropping = s.stays(), s.stays(), s.holds
	}
	more := now - s.charged
	s.p.ceded.Add(ceded - s.ceded)
	s.p.dropping.Add(dropping - s.dropping)
	s.dropping = dropping
	s.p.buffered.Add(more)
	s.charged, s.ceded = now, ceded
	switch {
	case more < 0:
		s.p.makeRoom()
	case more > 0 && s.p.ceiling.grow(more):
		s.p.ceiling.call()
	}
}

package reclaim

import (
	"context"
	"sync/atomic"
	"time"

	"streamproxy/internal/resp"
)

// Session is one client connection as reclaim sees it. Its methods are called by
// the connection's reader, one at a time.
type Session struct {
	e         *Engine
	id        Identity
	consumers []*consumer // under the engine's lock
	left      bool        // likewise
	learnings int         // begun for it and under way; likewise
	parting   atomic.Bool
	last      lastRead
	stranger  bool // see SetStranger
}

// Join begins a session.
func (e *Engine) Join(id Identity) *Session { return &Session{e: e, id: id} }

// Become changes the session's identity, after SELECT, AUTH, HELLO or RESET.
func (s *Session) Become(id Identity) {
	if s.id == id {
		return
	}
	e := s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.id.User != id.User || s.id.DB != id.DB {
		e.giveBackLocked(s.leaveConsumers(time.Now()))
	}
	s.id = id
	s.remember(lastRead{})
}

// SetStranger says whether the client has had no reply yet. One that leaves without reading any, again
// and again, has claims made that all go back: it is given little at a time.
func (s *Session) SetStranger(stranger bool) { s.stranger = stranger }

// Part says that the client has ended the connection, though not all that it sent before was
// judged yet: nothing is learned any more for that, nor waited for until it is.
func (s *Session) Part() { s.parting.Store(true) }

// Leave ends the session: nothing is claimed for its consumers any more unless
// they have other connections, and what is held for them is given back.
func (s *Session) Leave() {
	e := s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	s.left = true
	s.remember(lastRead{})
	e.giveBackLocked(s.leaveConsumers(time.Now()))
}

// Command judges a command outside of a transaction, class shared or blocking.
// Commands that are not Interesting need not be shown.
func (s *Session) Command(cmd resp.Command) Verdict {
	e := s.e
	if e.cfg.Mode == Off {
		return Verdict{}
	}
	switch kindOf(cmd.Arg(0)) {
	case kindGet:
		return s.get(cmd)
	case kindSet:
		return s.set(cmd)
	case kindEvalSHA:
		return s.evalSHA(cmd)
	case kindScript:
		return s.script(cmd)
	case kindAdd:
		return watching(s.trimmed(cmd))()
	case kindClaim:
		return s.claim(cmd)
	case kindRead:
		return s.read(cmd)
	case kindSettle:
		return s.after(s.takeNamed(cmd), watching(s.pursuit(cmd)))
	case kindMove:
		return s.move(cmd)
	case kindGroup:
		return s.group(cmd)
	case kindDrop:
		return s.drop(cmd)
	case kindList:
		return s.after(s.takeListed(cmd), pass)
	}
	return Verdict{}
}

// Block judges a complete transaction, from MULTI to EXEC. Its verdict is about
// all of it: an answer holds one reply for each command.
func (s *Session) Block(cmds []resp.Command) Verdict {
	if s.e.cfg.Mode == Off {
		return Verdict{}
	}
	if f, ok := s.parseForm(cmds); ok {
		return s.form(f)
	}
	var moved []*batch
	var lost []loss
	var naming []resp.Command
	var adding func(reply []byte)
	for _, c := range cmds {
		switch kindOf(c.Arg(0)) {
		case kindSettle:
			moved = append(moved, s.takeNamed(c)...)
			naming = append(naming, c)
		case kindMove:
			moved = append(moved, s.takeNamed(c)...)
			naming = append(naming, c)
			s.hintMove(c)
		case kindAdd:
			adding = both(adding, s.trimmed(c))
		case kindRead:
			moved = append(moved, s.takeHistory(c)...)
		case kindClaim:
			moved = append(moved, s.takeListed(c)...)
			naming = append(naming, c)
		case kindList:
			moved = append(moved, s.takeListed(c)...)
		case kindGroup, kindDrop:
			if l, ok := s.losing(c); ok {
				lost = append(lost, l)
			}
		}
	}
	return s.lose(lost, moved, both(s.pursuit(naming...), adding))
}

// after gives back what was held before the command goes its way, so that the
// server sees the entries as they would be without us.
func (s *Session) after(held []*batch, then func() Verdict) Verdict {
	if len(held) == 0 {
		return then()
	}
	return s.deferred(func(ctx context.Context) Verdict {
		s.e.restoreAll(ctx, held)
		return s.final(ctx, then())
	})
}

// final carries out at once what is to be deferred.
func (s *Session) final(ctx context.Context, v Verdict) Verdict {
	for v.Action == Defer {
		v = v.Task.Run(ctx)
	}
	return v
}

// pass forwards a command as it is.
func pass() Verdict { return Verdict{} }

func (s *Session) deferred(run func(ctx context.Context) Verdict) Verdict {
	return Verdict{Action: Defer, Task: &Task{run: run}}
}

// forward lets a command of a reclaim pass through and says why.
func (s *Session) forward(reason string) Verdict {
	s.e.cfg.Events.forwarded(reason)
	return Verdict{}
}

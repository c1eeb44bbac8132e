package reclaim

import (
	"slices"
	"strconv"

	"streamproxy/internal/resp"
)

// Some commands end a stream, a group or a consumer. What is known of it here is
// forgotten when they come by, so that their sender hears of its loss at once, from
// the server itself; what is held of it goes back first, lest it be lost as the property
// of somebody who never asked for it. What is lost in another way shows in the next
// round.

// loss is what a command ends.
type loss struct {
	everyDB bool
	db      int
	swapped bool // with is lost as well
	with    int
	streams []string // nil: all there are
	group   string
	named   bool // only of that group
	// consumer, if not nil, is all that is lost, with what is pending in its name.
	consumer *string
}

// of reports whether a target is lost, or a consumer of it.
func (l *loss) of(k targetKey) bool {
	return (l.everyDB || l.db == k.db || l.swapped && l.with == k.db) && (l.streams == nil || slices.Contains(l.streams, k.stream)) &&
		(!l.named || l.group == k.group)
}

// losing reads a command that may end something that is known here.
func (s *Session) losing(cmd resp.Command) (l loss, ok bool) {
	l.db = s.id.DB
	n := cmd.Len()
	switch name := cmd.Arg(0); {
	case fold(name, "xgroup"):
		return s.losingGroup(cmd)
	case fold(name, "flushall"):
		l.everyDB = true
		return l, !s.e.known.empty()
	case fold(name, "swapdb"):
		return swapping(cmd), !s.e.known.empty()
	case fold(name, "flushdb"):
		return l, !s.e.known.empty()
	case fold(name, "rename"), fold(name, "renamenx"), fold(name, "copy"):
		n = min(n, 3)
	case fold(name, "move"):
		n = min(n, 2)
	}
	for i := 1; i < n; i++ {
		if s.e.known.has(cmd.Arg(i)) {
			l.streams = append(l.streams, string(cmd.Arg(i)))
		}
	}
	return l, len(l.streams) > 0
}

// swapping reads SWAPDB. Databases that are no numbers the server refuses.
func swapping(cmd resp.Command) loss {
	one, err := strconv.Atoi(string(cmd.Arg(1)))
	other, errOther := strconv.Atoi(string(cmd.Arg(2)))
	return loss{db: one, with: other, swapped: true, everyDB: err != nil || errOther != nil}
}

// losingGroup reads XGROUP DESTROY and DELCONSUMER.
func (s *Session) losingGroup(cmd resp.Command) (l loss, ok bool) {
	l = loss{db: s.id.DB, streams: []string{string(cmd.Arg(2))}, group: string(cmd.Arg(3)), named: true}
	switch {
	case cmd.Len() == 4 && fold(cmd.Arg(1), "destroy"):
		return l, true
	case cmd.Len() == 5 && fold(cmd.Arg(1), "delconsumer"):
		name := string(cmd.Arg(4))
		l.consumer = &name
		return l, true
	}
	return l, false
}

// drop judges what ends streams.
func (s *Session) drop(cmd resp.Command) Verdict {
	l, ok := s.losing(cmd)
	if !ok {
		return Verdict{}
	}
	return s.lose([]loss{l}, nil, nil)
}

// group judges XGROUP. A consumer that is deleted takes its pending entries with it for
// good, which is counted.
func (s *Session) group(cmd resp.Command) Verdict {
	l, ok := s.losingGroup(cmd)
	if !ok {
		return Verdict{}
	}
	e := s.e
	return s.lose([]loss{l}, nil, func(reply []byte) {
		n, err := strconv.ParseInt(textOf(reply), 10, 64)
		if l.consumer == nil || err != nil || n == 0 || isError(reply) {
			return
		}
		e.cfg.Events.consumerDeleted(n)
		e.cfg.Logger.Warn("a consumer was deleted with its pending entries", "stream", l.streams[0], "group", l.group, "entries", n)
	})
}

// lose forwards commands that end what is listed, after what is held of it, and whatever
// else is given, has gone back. seen, if not nil, gets the replies.
func (s *Session) lose(list []loss, held []*batch, seen func(reply []byte)) Verdict {
	if len(list) == 0 {
		return s.after(held, watching(seen))
	}
	e := s.e
	e.mu.Lock()
	for i := range list {
		held = append(held, e.takeLost(&list[i])...)
	}
	e.mu.Unlock()
	e.forget(list)
	return s.after(held, func() Verdict {
		return Verdict{Watch: &Watch{seen: func(reply []byte) {
			e.forget(list) // a learning may have been under way
			if seen != nil && len(reply) > 0 {
				seen(reply)
			}
		}}}
	})
}

// takeLost takes what is held of what is going to be lost. The lock is held.
func (e *Engine) takeLost(l *loss) (taken []*batch) {
	e.spoil(l.of)
	for b := range e.held {
		if l.of(b.profile.target.targetKey) && (l.consumer == nil || b.concerns(*l.consumer)) {
			e.release(b)
			taken = append(taken, b)
		}
	}
	return taken
}

// forget ends the profiles of what is lost.
func (e *Engine) forget(list []loss) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range list {
		if list[i].consumer != nil {
			continue
		}
		for _, t := range e.lost(&list[i]) {
			for _, p := range t.profiles {
				e.endProfile(p)
			}
		}
	}
}

// lost lists the targets that are lost. The lock is held.
func (e *Engine) lost(l *loss) (list []*target) {
	look := func(t *target) {
		if l.of(t.targetKey) {
			list = append(list, t)
		}
	}
	if l.streams == nil {
		for _, t := range e.targets {
			look(t)
		}
		return list
	}
	for _, s := range l.streams {
		for _, t := range e.known.of([]byte(s)) {
			look(t)
		}
	}
	return list
}

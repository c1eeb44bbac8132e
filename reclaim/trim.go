package reclaim

import "streamproxy/internal/resp"

// XADD with MAXLEN or MINID deletes older entries, pending ones too, and its reply does not
// say which. What is held of such a stream may be gone. It does not go back at once, as for
// XTRIM: producers that add so do it with every entry, and what goes back each time would
// reach nobody. It goes back when its consumer asks, who has the server's own answer then.

// Trims reports whether a command is an XADD that may delete entries. Its options stand before
// the id.
func Trims(cmd resp.Command) bool {
	if kindOf(cmd.Arg(0)) != kindAdd {
		return false
	}
	for i := 2; i < cmd.Len(); i++ {
		switch a := cmd.Arg(i); {
		case fold(a, "maxlen"), fold(a, "minid"):
			return true
		case fold(a, "nomkstream"), fold(a, "keepref"), fold(a, "delref"), fold(a, "acked"):
		default:
			return false
		}
	}
	return false
}

// Trim takes note of such a command, on whatever connection it goes: what is held of its stream,
// or on its way to be, may be gone.
func (e *Engine) Trim(db int, cmd resp.Command) {
	if !e.untouched() {
		e.trim(db, string(cmd.Arg(1)))
	}
}

func (e *Engine) trim(db int, stream string) {
	concerned := func(k targetKey) bool { return k.db == db && k.stream == stream }
	e.mu.Lock()
	defer e.mu.Unlock()
	for b := range e.held {
		if concerned(b.profile.target.targetKey) {
			b.trimmed = true
		}
	}
	e.underWay(concerned, func(a *ahead, i int) { a.trimmed[i] = true })
}

// trimmed takes note of a command that may be an XADD which deletes, and returns what to call with
// its reply, nil for none: a claim that was sent later may reach the server before it.
func (s *Session) trimmed(cmd resp.Command) func(reply []byte) {
	e := s.e
	if !Trims(cmd) {
		return nil
	}
	e.Trim(s.id.DB, cmd)
	if e.known.empty() || e.warm.Load() == 0 && e.untouched() || !e.known.has(cmd.Arg(1)) {
		return nil
	}
	db, stream := s.id.DB, string(cmd.Arg(1))
	return func([]byte) { e.trim(db, stream) }
}

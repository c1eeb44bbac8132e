package reclaim

import (
	"streamproxy/internal/resp"
)

// scriptKey says that one user has seen a lock script to be loaded.
type scriptKey struct {
	user   User
	script lockScript
}

// script judges SCRIPT EXISTS, and learns from what else is said of scripts.
func (s *Session) script(cmd resp.Command) Verdict {
	switch {
	case fold(cmd.Arg(1), "exists"):
		return s.scriptExists(cmd)
	case fold(cmd.Arg(1), "flush"):
		e := s.e
		e.mu.Lock()
		clear(e.scripts)
		e.mu.Unlock()
	}
	return Verdict{}
}

// scriptExists answers for the scripts of a lock that this user has seen loaded.
// That somebody may have flushed them since does no harm: what is answered here
// does not need them, and a form that is forwarded brings its own.
func (s *Session) scriptExists(cmd resp.Command) Verdict {
	e := s.e
	asked := make([]lockScript, 0, cmd.Len())
	for i := 2; i < cmd.Len(); i++ {
		sc := scriptOf(cmd.Arg(i))
		if sc == noScript {
			return Verdict{}
		}
		asked = append(asked, sc)
	}
	if len(asked) == 0 {
		return Verdict{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	loaded := e.profiles > 0 && e.cfg.Mode == On && !e.draining
	for _, sc := range asked {
		_, ok := e.scripts[scriptKey{s.id.User, sc}]
		loaded = loaded && ok
	}
	if loaded {
		e.cfg.Events.local("script")
		return answer(scriptsLoaded(len(asked)))
	}
	id := s.id
	return Verdict{Watch: &Watch{Whole: true, seen: func(reply []byte) { e.scriptsSeen(id, asked, reply) }}}
}

func (e *Engine) scriptsSeen(id Identity, asked []lockScript, reply []byte) {
	flags, err := elements(reply)
	if err != nil || len(flags) != len(asked) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, f := range flags {
		e.noteScript(id.User, asked[i], textOf(f) == "1")
	}
}

// noteScript books whether a script is loaded. The lock is held.
func (e *Engine) noteScript(user User, sc lockScript, loaded bool) {
	if !loaded {
		for k := range e.scripts {
			if k.script == sc {
				delete(e.scripts, k)
			}
		}
		return
	}
	e.scripts[scriptKey{user, sc}] = struct{}{}
}

// watchScript learns from the reply to a script whether it is loaded.
func (s *Session) watchScript(sc lockScript) *Watch {
	e, id := s.e, s.id
	return &Watch{seen: func(reply []byte) {
		if len(reply) == 0 {
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		switch {
		case errorCode(reply) == "NOSCRIPT":
			e.noteScript(id.User, sc, false)
		case !isError(reply):
			e.noteScript(id.User, sc, true)
		}
	}}
}

// loadRelease makes the server know the release script.
var loadRelease = resp.AppendCommand(nil, "SCRIPT", "LOAD", releaseBody)

package reclaim

import (
	"strconv"
	"strings"

	"streamproxy/internal/resp"
)

// move judges XCLAIM and XNACK, by which clients move entries by name. What is held
// of them goes back first; an idle time set by hand is something that a probe may
// not see.
func (s *Session) move(cmd resp.Command) Verdict {
	forward := func() Verdict {
		if cmd.Len() > 2 && setsIdle(cmd) {
			e := s.e
			e.mu.Lock()
			e.hint(s.id.DB, string(cmd.Arg(1)), string(cmd.Arg(2)))
			e.mu.Unlock()
		}
		return Verdict{}
	}
	taken := s.takeNamed(cmd)
	if len(taken) > 0 {
		cmd = cloneCommand(cmd)
	}
	return s.after(taken, forward)
}

// setsIdle reports whether a command may make an entry's idle time exceed its age.
func setsIdle(cmd resp.Command) bool {
	if fold(cmd.Arg(0), "xnack") {
		return true
	}
	for i := 6; i < cmd.Len(); i++ {
		if fold(cmd.Arg(i), "idle") || fold(cmd.Arg(i), "time") {
			return true
		}
	}
	return false
}

// group watches XGROUP DELCONSUMER, which takes pending entries with it for good.
func (s *Session) group(cmd resp.Command) Verdict {
	if cmd.Len() != 5 || !fold(cmd.Arg(1), "delconsumer") {
		return Verdict{}
	}
	e := s.e
	stream, group := string(cmd.Arg(2)), string(cmd.Arg(3))
	return Verdict{Watch: &Watch{seen: func(reply []byte) {
		n, err := strconv.ParseInt(textOf(reply), 10, 64)
		if err != nil || n == 0 || isError(reply) {
			return
		}
		e.cfg.Events.consumerDeleted(n)
		e.cfg.Logger.Warn("a consumer was deleted with its pending entries", "stream", stream, "group", group, "entries", n)
	}}}
}

// lessID compares two entry ids.
func lessID(a, b string) bool {
	am, as := splitID(a)
	bm, bs := splitID(b)
	return am < bm || am == bm && as < bs
}

// splitID reads an id; what is not one counts as zero.
func splitID(id string) (ms, seq uint64) {
	m, s, _ := strings.Cut(id, "-")
	ms, err := strconv.ParseUint(m, 10, 64)
	if err != nil {
		return 0, 0
	}
	if seq, err = strconv.ParseUint(s, 10, 64); err != nil {
		return ms, 0
	}
	return ms, seq
}

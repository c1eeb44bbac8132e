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
	s.hintMove(cmd)
	return s.after(s.takeNamed(cmd), watching(s.pursuit(cmd)))
}

// hintMove tells the holder of the lease of entries whose idle time is set by hand. The
// holder looks at their stream for longer than it takes the command to be executed.
func (s *Session) hintMove(cmd resp.Command) {
	if cmd.Len() > 2 && setsIdle(cmd) {
		s.e.mu.Lock()
		defer s.e.mu.Unlock()
		s.e.hint(s.id.DB, string(cmd.Arg(1)), string(cmd.Arg(2)))
	}
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

package proxy

import (
	"streamproxy/internal/resp"
	"streamproxy/reclaim"
)

// Reclaim is shown what stream consumers send where that can be framed and comes at its
// time, see streams.go. What a client sends over a connection of its own, in pieces, or as
// a script may do the same to the entries that are held, and is announced instead.

// unseen announces it: before it is sent, what is held goes back.
func (s *session) unseen() {
	t := s.p.streams.Unseen()
	if t == nil {
		return
	}
	s.flushLocal()
	ctx, cancel := s.p.within(s.p.cfg.UpstreamTimeout)
	defer cancel()
	t.Run(ctx)
}

// meddles reports whether a command that reclaim is not shown is to be announced. An XADD that
// deletes older entries is noted instead, unless it is only queued, or nobody knows for which
// database: producers send nothing else.
func (s *session) meddles(cmd resp.Command, route Route) bool {
	switch {
	case s.p.streams == nil:
		return false
	case !s.tx.multi && !s.tx.strayed && reclaim.Trims(cmd):
		s.p.streams.Trim(s.key.DB, cmd)
		return false
	}
	return route.Class == ClassUnknown && !route.Loose || reclaim.Meddles(cmd)
}

// hidden reports whether one is to be announced though reclaim is shown it.
func hidden(cmd resp.Command, route Route) bool {
	return route.Class == ClassUnknown && !route.Loose || reclaim.Hides(cmd)
}

// ownMeddles is meddles for a session that has a connection of its own: what is queued there is
// executed with EXEC.
func (s *session) ownMeddles(cmd resp.Command, route Route) bool {
	meddles := s.meddles(cmd, route)
	s.tx.meddles = s.tx.meddles || meddles
	return meddles || route.Verb == VerbExec && s.tx.meddles
}

// passing notes whether a command of a pinned session is to be announced before what has
// been framed is passed on. whole is false for a piece of one.
func (s *session) passing(cmd resp.Command, whole bool) {
	if s.meddling || s.p.streams == nil {
		return
	}
	if !whole {
		s.meddling = true
		return
	}
	route := s.p.table.Load().Classify(cmd)
	s.meddling = route.Verb == VerbExec || s.meddles(cmd, route)
}

// announce does that.
func (s *session) announce() {
	if s.meddling {
		s.meddling = false
		s.unseen()
	}
}

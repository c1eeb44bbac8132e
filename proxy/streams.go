package proxy

import (
	"streamproxy/internal/resp"
	"streamproxy/reclaim"
)

// What stream consumers send is shown to reclaim before it is sent; this file
// carries out what it says.

// judge asks reclaim about a command. The zero verdict lets it pass.
func (s *session) judge(cmd resp.Command, route Route) reclaim.Verdict {
	if s.p.streams == nil || route.Class == ClassDenied {
		return reclaim.Verdict{}
	}
	if s.own != nil {
		if s.ownMeddles(cmd, route) {
			s.unseen()
		}
		return reclaim.Verdict{}
	}
	if hidden(cmd, route) {
		s.unseen()
	}
	if !s.p.streams.Interesting(cmd) || s.failing() {
		return reclaim.Verdict{}
	}
	return s.streamSession().Command(cmd)
}

// judgeBlock asks reclaim about a whole transaction.
func (s *session) judgeBlock(b []byte) reclaim.Verdict {
	if s.p.streams == nil || s.failing() {
		return reclaim.Verdict{}
	}
	var cmds []resp.Command
	streams, hides := false, false
	look := lookahead.Get().(*resp.CommandScanner)
	defer lookahead.Put(look)
	look.Reset()
	for len(b) > 0 {
		n, done, err := look.Scan(b)
		if err != nil || !done {
			return reclaim.Verdict{}
		}
		cmd := resp.Command{Raw: b[:n], Args: append([]resp.Span(nil), look.Args()...)}
		streams = streams || reclaim.Moves(cmd.Arg(0))
		hides = hides || reclaim.Hides(cmd)
		cmds = append(cmds, cmd)
		b = b[n:]
	}
	if hides {
		s.unseen()
	}
	if !streams {
		return reclaim.Verdict{}
	}
	return s.streamSession().Block(cmds)
}

// streamSession is the session as reclaim knows it, with its present identity.
func (s *session) streamSession() *reclaim.Session {
	id := s.streamIdentity()
	if s.stream == nil {
		s.stream = s.p.streams.Join(id)
	} else {
		s.stream.Become(id)
	}
	if s.left.Load() {
		s.stream.Part()
	}
	s.stream.SetStranger(!s.spoken.Load())
	return s.stream
}

// streamIdentity is the session's identity in reclaim's terms.
func (s *session) streamIdentity() reclaim.Identity {
	return reclaim.Identity{User: reclaim.User(s.key.User), DB: s.key.DB, Proto: s.key.Proto}
}

// passes reports whether a verdict asks for nothing.
func passes(v reclaim.Verdict) bool {
	return v.Action == reclaim.Forward && v.Watch == nil && v.Parked == nil && v.AheadN == 0
}

// carryOut does what a verdict on n commands says, raw being their bytes. It is
// called when everything earlier has been submitted.
func (s *session) carryOut(v reclaim.Verdict, raw []byte, n int, cmd resp.Command, route Route) {
	if v.Action == reclaim.Defer {
		s.waitIdle()
		v = s.runTask(v.Task)
	}
	switch v.Action {
	case reclaim.Answer:
		s.handOver(v)
	case reclaim.Fail:
		s.poisoned.Store(true)
		for range n {
			s.answer(replyUnknown)
		}
	default:
		s.forward(v, raw, n, cmd, route)
	}
}

// runTask asks what is to be asked first, or as much of it as is wanted without the client.
func (s *session) runTask(t *reclaim.Task) reclaim.Verdict {
	ctx, cancel := s.p.within(s.p.cfg.UpstreamTimeout)
	defer cancel()
	client, cancel := s.patienceOf(s.p.cfg.UpstreamTimeout)
	defer cancel()
	return t.Run(reclaim.Wanted(ctx, client))
}

// handOver answers from here. If the reply carries claimed entries, it is noted when
// they leave, or that they did not.
func (s *session) handOver(v reclaim.Verdict) {
	if v.Handout == nil {
		s.answer(v.Reply)
		return
	}
	s.waitIdle()
	s.mu.Lock()
	gone := s.closed
	if !gone {
		s.handouts = append(s.handouts, handout{s.appended, v.Handout})
		s.append(v.Reply)
	}
	s.mu.Unlock()
	if gone {
		v.Handout.Drop()
		return
	}
	s.flush()
}

// forward sends what is not answered here, and lets reclaim see what it wants to.
func (s *session) forward(v reclaim.Verdict, raw []byte, n int, cmd resp.Command, route Route) {
	if route.Class == ClassBlocking {
		if !s.runExclusive(raw, exclusive{
			patient: true, cmd: cmd, verb: route.Verb, write: route.Write, parked: v.Parked, watch: v.Watch,
		}) {
			unseen(v)
		}
		return
	}
	if route.Loose {
		s.forwardApart(v, raw, n)
		return
	}
	if passes(v) {
		s.submitRun(raw, stretch{to: len(raw), n: n, write: route.Write})
		return
	}
	g := &segment{s: s, shared: true}
	raw, g.rewrite = behind(v, raw)
	if v.Watch != nil {
		kept := new([]byte)
		g.tee = kept
		g.done = func(_ []byte, err error) { v.Watch.Seen(seenReplies(*kept, v.AheadN, err)) }
	}
	if !s.submitAs(g, raw, stretch{n: n + v.AheadN, write: route.Write}) {
		unseen(v)
	}
}

// forwardApart is forward for a command that may not share a lane.
func (s *session) forwardApart(v reclaim.Verdict, raw []byte, n int) {
	x := exclusive{loose: true, write: true, commands: n + v.AheadN, watch: v.Watch, ahead: v.AheadN}
	raw, x.rewrite = behind(v, raw)
	if !s.runExclusive(raw, x) {
		unseen(v)
	}
}

// behind returns a command behind those that a verdict wants sent ahead of it, and what
// takes their replies off the ones that come; nil if there are none.
func behind(v reclaim.Verdict, raw []byte) ([]byte, func(replies []byte) []byte) {
	if v.AheadN == 0 {
		return raw, nil
	}
	return append(append([]byte(nil), v.Ahead...), raw...), func(replies []byte) []byte { return withoutFirst(replies, v.AheadN) }
}

// seenReplies is what reclaim is shown of the replies to a forwarded command: nil if
// not all of them are there.
func seenReplies(kept []byte, ahead int, err error) []byte {
	if err != nil || len(kept) >= teeLimit {
		return nil
	}
	return withoutFirst(kept, ahead)
}

// unseen ends what a verdict has handed out for a command that was not sent.
func unseen(v reclaim.Verdict) {
	if v.Watch != nil {
		v.Watch.Seen(nil)
	}
	if v.Parked != nil {
		v.Parked.End(nil)
	}
}

// handout is entries in a reply that begins at a position of the session's output.
type handout struct {
	at uint64
	h  parcel
}

// leftNow returns the handouts of which a byte has left, n bytes more having been
// written. The lock is held; the caller settles them without it.
func (s *session) leftNow(n int) (left []handout) {
	s.taken += uint64(n)
	if len(s.handouts) == 0 {
		return nil
	}
	k := 0
	for k < len(s.handouts) && s.handouts[k].at < s.taken {
		k++
	}
	if k > 0 {
		left = append(left, s.handouts[:k]...)
		s.handouts = append(s.handouts[:0], s.handouts[k:]...)
	}
	return left
}

func written(left []handout) {
	for _, h := range left {
		h.h.Written()
	}
}

// dropHandouts gives back what the client will not get. A writer that is not done yet may
// have handed bytes over already, without having said so.
func (s *session) dropHandouts() {
	s.mu.Lock()
	s.waiters++
	for s.writing {
		s.cond.Wait()
	}
	s.waiters--
	list := s.handouts
	s.handouts = nil
	s.mu.Unlock()
	for _, h := range list {
		h.h.Drop()
	}
}

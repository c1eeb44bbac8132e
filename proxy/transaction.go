package proxy

import (
	"bytes"
	"sync"

	"github.com/tidwall/redcon"

	"streamproxy/internal/resp"
)

// A transaction that arrives whole rides the lane: its bytes are contiguous there,
// so nobody's command can fall between MULTI and EXEC. One that is spoken step by
// step, and every WATCH, needs a connection of its own until it ends.

// tx is what a session's own connection has been told. Zero: nothing.
type tx struct {
	multi, watch bool
	// write: a command that may write has been queued.
	write bool
	// odd: something has been sent on the connection that may have changed it for
	// good; it stays the session's.
	odd bool
	// queued is how many commands EXEC will answer, changes what some of them make of the session.
	queued  int
	changes []queued
	// strayed: pinned, it may be in another database than the session's key says.
	strayed bool
	// meddles: something is queued that reclaim has to hear of when it is executed.
	meddles bool
	// begun is what the server has agreed to.
	begun *begun
}

// begun is which of MULTI and WATCH the server has not refused, by an ACL or for another reason. The
// session's mu guards it.
type begun struct{ multi, watch bool }

var lookahead = sync.Pool{New: func() any { return resp.NewCommandScanner(resp.DefaultLimits()) }}

// wholeBlock looks whether b, which begins with MULTI, holds the transaction up to
// its EXEC, and whether every command in it could be shared on its own: only then
// does it leave the connection as it was, whatever ACLs say of MULTI itself.
func (s *session) wholeBlock(b []byte) (whole stretch, ok bool) {
	look := lookahead.Get().(*resp.CommandScanner)
	defer lookahead.Put(look)
	look.Reset()
	table := s.p.table.Load()
	for whole.to < len(b) && whole.to <= largeCommand {
		n, done, err := look.Scan(b[whole.to:])
		if err != nil || !done || look.Inline() {
			return whole, false
		}
		cmd := resp.Command{Raw: b[whole.to : whole.to+n], Args: look.Args()}
		whole.to += n
		if cmd.Len() == 0 {
			return whole, false // Redis executes nothing here, and answers nothing
		}
		whole.n++
		route := table.Classify(cmd)
		switch {
		case route.Class == ClassShared:
			whole.write = whole.write || route.Write
			whole.wide = whole.wide || isWide(cmd)
		case route.Class != ClassTransaction:
			return whole, false
		case whole.n == 1: // MULTI
		case route.Verb == VerbExec:
			return whole, cmd.Len() == 1 && whole.to <= largeCommand
		default:
			return whole, false
		}
	}
	return whole, false
}

// transactionCommand runs MULTI, EXEC, DISCARD, WATCH and UNWATCH.
func (s *session) transactionCommand(cmd resp.Command, route Route) {
	// With arguments that do not fit, a command neither begins nor ends anything, but for EXEC: a server
	// that refuses it discards the transaction.
	begins := route.Verb == VerbWatch && cmd.Len() > 1 || route.Verb == VerbMulti && cmd.Len() == 1
	ends := route.Verb != VerbWatch && route.Verb != VerbMulti && (cmd.Len() == 1 || route.Verb == VerbExec && s.tx.multi)
	if ends && s.own != nil && !s.tx.odd {
		s.forgetRefused()
	}
	switch {
	case s.own != nil:
	case ends:
		s.submit(cmd.Raw, 1) // there is nothing to end: the server says so
		return
	case !begins:
		s.runOnce(cmd)
		return
	case !s.ownConn():
		return
	}
	switch {
	case begins:
		s.tx.multi = s.tx.multi || route.Verb == VerbMulti
		s.tx.watch = s.tx.watch || route.Verb == VerbWatch
	case !ends:
	case s.tx.multi && route.Verb == VerbUnwatch: // queued like any other
	case !s.tx.multi && route.Verb != VerbUnwatch: // an error, which leaves a watch as it is
	case s.tx.odd:
		s.endOdd(cmd, route)
		return
	default:
		s.endTransaction(cmd, route)
		return
	}
	if !begins {
		s.submit(cmd.Raw, 1)
		return
	}
	queued := s.tx.queued
	s.begins(cmd, route.Verb)
	s.tx.queued = queued // MULTI and WATCH are refused within MULTI, and change nothing there
}

// begins sends MULTI or WATCH, and notes whether the server agrees.
func (s *session) begins(cmd resp.Command, v Verb) {
	if s.tx.begun == nil {
		s.tx.begun = new(begun)
	}
	noted := &s.tx.begun.watch
	if v == VerbMulti {
		noted = &s.tx.begun.multi
	}
	s.ask(cmd.Raw, func(reply []byte) []byte {
		*noted = *noted || agrees(reply)
		return reply
	})
}

// forgetRefused takes back what the server has refused to begin: it may refuse to end that as well, and
// nothing is torn then. A connection on which nothing has begun is no longer the session's.
func (s *session) forgetRefused() {
	s.waitIdle()
	if s.failing() || s.tx.begun == nil {
		return
	}
	s.tx.watch = s.tx.begun.watch
	if s.tx.multi && !s.tx.begun.multi { // what followed was not queued but executed
		s.tx.multi, s.tx.queued = false, 0
		if s.tx.write {
			s.tx.write = false
			s.noteWrite()
		}
	}
	own := s.own
	if s.tx.multi || s.tx.watch || own.SetOwner(nil) != nil {
		return
	}
	s.own, s.conn, s.tx = nil, nil, tx{}
	own.SetPatient(false) // of a blocking command that was to be queued
	s.hub.giveBack(own)
	<-s.p.txSlots
}

// ownConn gives the session a connection of its own, out of the quota of
// transactions. It answers the command as not sent, and returns false, if there is
// none to be had.
func (s *session) ownConn() bool {
	s.flushLocal()
	if !s.txSlot() {
		return false
	}
	c := s.borrowAs(useTransaction)
	if c == nil || c.SetOwner(&pipe{s: s}) != nil {
		<-s.p.txSlots
		s.failHere(1)
		return false
	}
	s.dropLane()
	s.own, s.conn, s.tx = c, c, tx{}
	return true
}

// txSlot takes a place among the transactions, for which it waits. It answers the command as not sent,
// and returns false, if there is none.
func (s *session) txSlot() bool {
	select {
	case s.p.txSlots <- struct{}{}:
	default:
		if !s.queueForTxSlot() {
			return false
		}
	}
	s.p.txPeak.saw(len(s.p.txSlots))
	return true
}

// queueForTxSlot is txSlot where a place has to be waited for.
func (s *session) queueForTxSlot() bool {
	ctx, cancel := s.patience()
	defer cancel()
	select {
	case s.p.txSlots <- struct{}{}:
		return true
	case <-ctx.Done():
	}
	if s.resigned() {
		s.failHere(1)
		return false
	}
	s.p.met(LimitTransactions, "transaction refused", "client", s.remote(), "private_max", s.p.cfg.PrivateMax)
	s.poisoned.Store(true)
	s.answer(redcon.AppendError(nil, textTxLimit))
	return false
}

// endTransaction sends the command that ends it. The connection goes back to the
// spares if the reply proves it clean. If it does not, the server may take what the
// client sends next for a part of the transaction, and nobody else would: the client is
// treated as if that connection were lost.
func (s *session) endTransaction(cmd resp.Command, route Route) {
	s.waitIdle()
	own, write := s.own, s.tx.write && route.Verb == VerbExec
	s.own, s.conn, s.tx = nil, nil, tx{}
	if s.refuse() {
		own.Close()
		<-s.p.txSlots
		return
	}
	s.runExclusive(cmd.Raw, exclusive{conn: own, tx: true, write: write, dirty: func(prefix []byte) bool {
		return !provesClean(route.Verb, prefix)
	}})
}

// endOdd sends the command that ends a transaction on a connection that stays the
// session's.
func (s *session) endOdd(cmd resp.Command, route Route) {
	s.waitIdle()
	write, changes := s.tx.write && route.Verb == VerbExec, s.tx.changes
	s.tx = tx{odd: true, watch: s.tx.watch && route.Verb != VerbExec}
	switch {
	case s.refuse():
	case len(changes) == 0 || route.Verb != VerbExec:
		s.runExclusive(cmd.Raw, exclusive{conn: s.own, kept: true, write: write})
	default:
		reply := new(elements)
		s.runExclusive(cmd.Raw, exclusive{conn: s.own, kept: true, write: write, elements: reply})
		s.waitIdle()
		s.executed(changes, reply)
	}
}

// provesClean reports whether the reply to the end of a transaction leaves no doubt
// that it has ended.
func provesClean(v Verb, prefix []byte) bool {
	switch v {
	case VerbExec:
		return bytes.HasPrefix(prefix, []byte("*")) || bytes.HasPrefix(prefix, []byte("_")) ||
			bytes.HasPrefix(prefix, []byte("-EXECABORT"))
	default:
		return bytes.HasPrefix(prefix, []byte("+OK\r\n"))
	}
}

// ownCommand runs a command, other than a shared one, of a session that has a
// connection of its own.
func (s *session) ownCommand(cmd resp.Command, route Route) {
	switch route.Class {
	case ClassTransaction:
		s.transactionCommand(cmd, route)
		return
	case ClassSubscriber, ClassForGood:
		if route.Verb == VerbClientTracking {
			s.tracking(cmd)
		} else {
			s.pinOwn(cmd.Raw)
		}
		return
	}
	switch {
	case route.Verb == VerbReset && cmd.Len() == 1:
		s.waitIdle()
		s.dropOwn()
		s.reset(cmd)
	case route.Verb == VerbQuit:
		s.stateCommand(cmd, route)
	case saysWho(route.Verb):
		s.ownLogin(cmd, route.Verb)
	case route.Verb == VerbSelect, route.Verb == VerbReset, route.Verb == VerbClientSetName && (s.tx.multi || s.tx.odd):
		s.tellOwn(cmd.Raw, changeOf(cmd, route.Verb), setsUp(route))
	case s.tx.multi:
		s.tx.odd = s.tx.odd || (route.Class != ClassBlocking && route.Class != ClassWait)
		s.own.SetPatient(true) // should MULTI have been denied, it does block
		s.submitAs(nil, cmd.Raw, stretch{n: 1, write: route.Write, wide: isWide(cmd)})
	case route.Class == ClassWait:
		s.waitCommand(cmd, route)
	case route.Class == ClassBlocking:
		s.waitIdle()
		s.runExclusive(cmd.Raw, exclusive{
			conn: s.own, kept: true, patient: true, cmd: cmd, verb: route.Verb, write: route.Write,
		})
	case route.Class == ClassUrgent:
		s.urgentCommand(cmd, route)
	case route.Class == ClassLocal:
		s.localCommand(cmd, route)
	case isClientState(route.Verb):
		s.clientCommand(cmd, route)
	default: // what is not known: the connection keeps it
		s.tx.odd = true
		s.submitAs(nil, cmd.Raw, stretch{n: 1, write: route.Write, wide: isWide(cmd)})
	}
}

// isClientState lists what is answered from the session itself.
func isClientState(v Verb) bool {
	return v == VerbClientID || v == VerbClientGetName || v == VerbClientSetName || v == VerbClientSetInfo
}

// pinOwn pins the session to its own connection. Within MULTI that keeps the name it has: there
// the server would take a new one for a part of the transaction.
func (s *session) pinOwn(b []byte) {
	s.pacePin()
	s.waitIdle()
	own := s.own
	if s.failing() || !s.tx.multi && !s.lendName(own) || own.SetRaw(&pipe{s: s}) != nil {
		s.hangUp()
		return
	}
	<-s.p.txSlots
	s.own, s.conn, s.tx = nil, nil, tx{strayed: s.tx.multi} // what is queued may move it
	s.pinTo(own, b)
}

// dropOwn gives up the session's own connection. The server forgets the transaction by
// DISCARD, or what is watched by UNWATCH, so that clients which leave in the middle, as many
// as like, do not cost a dial each. What else it may have been told it forgets with the
// connection. The place among the transactions is free when that is done.
func (s *session) dropOwn() {
	if s.own == nil {
		return
	}
	own, open, h := s.own, s.tx, s.hub
	s.own, s.conn, s.tx = nil, nil, tx{}
	if own.SetOwner(nil) != nil || open.odd {
		own.Close()
		<-s.p.txSlots
		return
	}
	s.p.giveBackOpen(h, own, open)
}

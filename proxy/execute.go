package proxy

import (
	"errors"
	"runtime"
	"time"

	"github.com/tidwall/redcon"

	"streamproxy/internal/resp"
	"streamproxy/reclaim"
)

// largeCommand is the size from which a command is not collected in memory but
// streamed over a connection of its own. On a lane a client that leaves in the
// middle of a body would make the next client's bytes part of it.
const largeCommand = 64 << 10

// stretch is a number of consecutive commands that go to the lane in one piece.
type stretch struct {
	from, to, n int
	write       bool // one of them may write
	wide        bool // they, or one of a transaction, have more arguments than should share a lane
}

// execute runs the complete commands at the start of b, which begins with a
// command's first byte, and returns how many bytes that took. It stops early when
// a command has to be waited for, and at the end of the session.
func (s *session) execute(b []byte) int {
	if s.pinned != nil {
		return s.sift(b)
	}
	if s.body != nil {
		return s.streamOn(b)
	}
	var run stretch
	pos, turn := 0, 0
	for pos < len(b) {
		at := pos
		if s.partial {
			at += int(s.scan.Size())
		}
		_, done, err := s.scan.Scan(b[at:])
		s.partial = !done
		if err != nil {
			s.submitRun(b, run)
			s.protocolError(err)
			return len(b)
		}
		if !done {
			if s.withhold() {
				break
			}
			s.submitRun(b, run)
			return pos + s.beginLarge(b[pos:])
		}
		start := pos
		pos += int(s.scan.Size())
		cmd := resp.Command{Raw: b[start:pos], Args: s.scan.Args()}
		if cmd.Len() > 0 && !s.scan.Inline() && s.authed {
			route := s.p.table.Load().Classify(cmd)
			s.count(route.Class)
			v := s.judge(cmd, route)
			if route.Class == ClassShared && passes(v) {
				run = s.lengthen(b, run, stretch{from: start, to: pos, n: 1, write: route.Write, wide: isWide(cmd)})
				continue
			}
			s.submitRun(b, run)
			run = stretch{from: pos, to: pos}
			if route.Verb == VerbMulti && s.own == nil {
				if whole, ok := s.wholeBlock(b[start:]); ok {
					run = s.block(b, start, whole)
					pos = start + whole.to
					continue
				}
			}
			if passes(v) {
				s.special(cmd, route)
			} else if s.room() {
				s.carryOut(v, cmd.Raw, 1, cmd, route)
			}
			if turn++; turn%siftTurn == 0 {
				s.flushLocal()
				runtime.Gosched() // as behind as many of a pinned client's
			}
		} else {
			s.submitRun(b, run)
			s.uncommon(cmd)
			if cmd.Len() == 0 {
				pos += resp.Empty(b[pos:])
			}
			run = stretch{from: pos, to: pos}
		}
		if s.held() || s.ending || s.pinned != nil {
			return pos
		}
	}
	s.submitRun(b, run)
	s.countFlush()
	return pos
}

// lengthen returns run with the next command at its end. If that cannot travel with it, run is
// sent, and the command begins another.
func (s *session) lengthen(b []byte, run, next stretch) stretch {
	switch {
	case run.n == 0:
		return next
	case run.n >= s.portion:
		s.submitRun(b, run)
		s.nextPortion()
		return next
	case run.to != next.from, run.wide != next.wide:
		s.submitRun(b, run)
		return next
	}
	run.to, run.n = next.to, run.n+1
	run.write = run.write || next.write
	return run
}

// submitRun sends a stretch to the lane.
func (s *session) submitRun(b []byte, run stretch) {
	if run.n == 0 {
		return
	}
	s.submitAs(nil, b[run.from:run.to], run)
}

// block handles a whole transaction, which stands in b from start on: it becomes a
// stretch of its own, unless reclaim has another use for it.
func (s *session) block(b []byte, start int, whole stretch) stretch {
	s.counts[ClassShared] += whole.n - 1
	end := start + whole.to
	raw := b[start:end]
	if v := s.judgeBlock(raw); !passes(v) {
		s.carryOut(v, raw, whole.n, resp.Command{}, Route{Class: ClassShared, Write: whole.write})
		return stretch{from: end, to: end}
	}
	return stretch{from: start, to: end, n: whole.n, write: whole.write, wide: whole.wide}
}

// uncommon handles what is not a canonical command of an authenticated client:
// nothing at all, an inline line, a command before AUTH.
func (s *session) uncommon(cmd resp.Command) {
	defer s.trimLine()
	cmd, err := s.unline(cmd)
	if err != nil {
		s.protocolError(err)
		return
	}
	if cmd.Len() == 0 {
		return
	}
	s.admit()
	route := s.p.table.Load().Classify(cmd)
	s.count(route.Class)
	var v reclaim.Verdict
	if s.authed {
		v = s.judge(cmd, route)
	}
	switch {
	case !s.authed && !beforeAuth(route.Verb):
		if s.room() {
			s.answer(noAuthReply)
		}
	case !passes(v):
		if s.room() {
			s.carryOut(v, cmd.Raw, 1, cmd, route)
		}
	case route.Class == ClassShared:
		s.submitRun(cmd.Raw, stretch{to: len(cmd.Raw), n: 1, write: route.Write, wide: isWide(cmd)})
	default:
		s.special(cmd, route)
	}
}

// unline splits an inline command into its words, and returns any other as it is. The
// result is good until the next one.
func (s *session) unline(cmd resp.Command) (resp.Command, error) {
	if !s.scan.Inline() || cmd.Len() == 0 {
		return cmd, nil
	}
	var err error
	s.line, s.spans, err = resp.AppendInline(s.line[:0], s.spans[:0], cmd.Arg(0))
	return resp.Command{Raw: s.line, Args: s.spans}, err
}

// trimLine gives back what a long inline command took: thousands of idle clients that once
// sent one would keep it for good.
func (s *session) trimLine() {
	if cap(s.line) > bufferSize {
		s.line, s.spans = nil, nil
	}
}

// beforeAuth lists what Redis lets a client do before it has proved who it is.
func beforeAuth(v Verb) bool {
	return v == VerbAuth || v == VerbHello || v == VerbQuit || v == VerbReset
}

// special runs a command that is not class shared.
func (s *session) special(cmd resp.Command, route Route) {
	if !s.room() { // answers from here fill its buffers too
		return
	}
	if route.Class == ClassDenied {
		s.deny(cmd)
		return
	}
	switch {
	case !s.failing() || route.Verb == VerbQuit:
	case setsUp(route):
		s.hangUp()
		return
	default:
		s.failHere(1)
		return
	}
	if s.parting != staying && !s.tx.multi && stays(route.Class) {
		s.answer(s.notSent())
		return
	}
	if s.own != nil {
		s.ownCommand(cmd, route)
		return
	}
	switch route.Class {
	case ClassTransaction:
		s.transactionCommand(cmd, route)
	case ClassWait:
		s.waitCommand(cmd, route)
	case ClassState:
		s.stateCommand(cmd, route)
	case ClassBlocking:
		s.runExclusive(cmd.Raw, exclusive{patient: true, cmd: cmd, verb: route.Verb, write: route.Write})
	case ClassUrgent:
		s.urgentCommand(cmd, route)
	case ClassLocal:
		s.localCommand(cmd, route)
	case ClassUnknown:
		if webRequest(cmd) {
			s.ending = true // as Redis does, without a word
			return
		}
		s.runUnknown(cmd, route)
	case ClassForGood:
		if route.Verb == VerbClientTracking {
			s.tracking(cmd)
			return
		}
		s.pin(cmd.Raw)
	default:
		s.pin(cmd.Raw)
	}
}

// webRequest recognises what a browser sends to a port that it should not speak to.
// The server hangs up on it, so that what a page makes the browser send next is never
// executed; so must the proxy.
func webRequest(cmd resp.Command) bool {
	return fold(cmd.Arg(0), "post") || fold(cmd.Arg(0), "host:")
}

// setsUp lists the commands that change the client's connection, see hangUp.
func setsUp(r Route) bool {
	switch r.Verb {
	case VerbSelect, VerbHello, VerbAuth, VerbReset:
		return true
	}
	return r.Class == ClassSubscriber || r.Class == ClassForGood
}

// refuse answers a command as not sent if an earlier one of its pipeline failed, or the
// session is over.
func (s *session) refuse() bool {
	if !s.failing() {
		return false
	}
	if !s.quits() {
		s.answer(s.notSent())
	}
	return true
}

// protocolError ends the session as Redis does: what came before is executed and
// answered, then the error, then the end.
func (s *session) protocolError(err error) {
	s.answer(s.protocolReply(err))
	s.ending = true
}

// protocolReply books what is not the protocol, and is what the client is told of it.
func (s *session) protocolReply(err error) []byte {
	if f := s.p.cfg.Events.ProtocolError; f != nil {
		f()
	}
	var pe *resp.ProtocolError
	if !errors.As(err, &pe) {
		pe = &resp.ProtocolError{Reason: "invalid request"}
	}
	return redcon.AppendError(nil, "ERR "+pe.Error())
}

// count books a command of class c; countFlush reports what was booked since.
func (s *session) count(c Class) {
	if s.counts[c]++; c != ClassShared {
		s.countFlush()
	}
}

func (s *session) countFlush() {
	f := s.p.cfg.Events.Commands
	now := time.Now().UnixNano()
	for c, n := range s.counts {
		if n == 0 {
			continue
		}
		if Class(c) != ClassBlocking {
			s.lastWork.Store(now)
		}
		s.p.commands.Add(int64(n))
		if f != nil {
			f(Class(c), n)
		}
		s.counts[c] = 0
	}
	s.lastCmd.Store(now)
}

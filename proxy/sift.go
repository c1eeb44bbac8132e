package proxy

import (
	"bytes"
	"runtime"
	"strconv"

	"streamproxy/internal/resp"
)

// What a pinned session sends is sifted. A command is held until it is whole, or known to be
// a large one, and to be none of those that the proxy must look at: a RESET, which ends the
// state for which the session was pinned; credentials, which the server alone would judge in
// another way, see login.go; and what is denied. What the proxy cannot frame, and the server
// perhaps can, does not pass at all: it may be any of them.

// siftTurn is how many commands are looked at before others get the processor: a chunk may hold
// thousands, and there may be many clients that send such chunks all the time.
const siftTurn = 128

// sift passes on what the commands at the start of b may, up to and including a RESET,
// and returns how many bytes that took. The end of its connection is told by its reader,
// so an error needs no handling here.
func (s *session) sift(b []byte) (n int) {
	if s.unframed {
		return len(b)
	}
	out := takeBuffer()
	defer out.release()
	for turn, stop := 1, false; n < len(b) && !stop; turn++ {
		var m int
		m, stop = s.siftOne(out, b[n:])
		if n += m; turn%siftTurn == 0 {
			runtime.Gosched()
		}
	}
	s.passOn(out)
	if s.unframed {
		s.breakOff()
		return len(b)
	}
	return n
}

// passOn sends what has been sifted.
func (s *session) passOn(out *buffer) {
	if len(out.b) > 0 {
		s.announce()
		_ = s.pinned.WriteBody(out.b, false)
		out.b = out.b[:0]
	}
}

// siftOne adds to out what may pass of the command at the start of b, or what the server
// gets instead, and returns how many bytes of b that took. It stops the sifting at a command
// that has to be held, at a RESET, at what is no command, and at the session's end.
func (s *session) siftOne(out *buffer, b []byte) (n int, stop bool) {
	at := 0
	if s.partial {
		at = int(s.scan.Size())
	}
	m, done, err := s.scan.Scan(b[at:])
	if err != nil {
		s.unframe(err)
		return 0, true
	}
	if n = at + m; s.pinSize > 0 {
		s.siftRest(out, b[:n], done)
		return n, false
	}
	if s.partial = !done && s.withhold(); s.partial {
		return 0, true
	}
	defer s.trimLine()
	cmd, err := s.unline(resp.Command{Raw: b[:n], Args: s.scan.Args()})
	if err != nil {
		s.unframe(err)
		return 0, true
	}
	withheld, stop := s.pick(out, cmd, done)
	if !done {
		s.scan.StopRecording()
		s.pinSize, s.withheld = n, withheld
	}
	return n, stop
}

// pick adds to out what the server gets for a command; done says that it is whole. withheld:
// what is still to come of it does not pass. stop: nothing may follow now.
func (s *session) pick(out *buffer, cmd resp.Command, done bool) (withheld, stop bool) {
	if cmd.Len() == 0 {
		out.b = append(out.b, cmd.Raw...) // replicas say that they are there so
		return false, false
	}
	route := s.p.table.Load().Classify(cmd)
	if done && cmd.Len() == 1 && route.Verb == VerbReset && route.Class != ClassDenied {
		s.expectReset()
		out.b = resp.AppendCommand(append(out.b, cmd.Raw...), "QUIT")
		return false, true
	}
	s.skipping = done && route.Class != ClassDenied && skips(cmd.Raw) // until here of the command before
	switch {
	case route.Class == ClassDenied:
		out.b = append(out.b, s.standIn(cmd)...)
		return true, false
	case saysWho(route.Verb):
		s.passOn(out) // nothing waits for the judgement
		if !done {
			out.b = append(out.b, s.wrongLogin()...)
			return true, false
		}
		raw, ok := s.vet(cmd, route.Verb)
		out.b = append(out.b, raw...)
		s.ending = s.ending || !ok
		return true, !ok
	}
	s.tx.strayed = s.tx.strayed || route.Verb == VerbSelect
	s.passing(cmd, done)
	s.noteAsked(route)
	out.b = append(out.b, cmd.Raw...)
	return false, false
}

// siftRest adds more of a command about which has been decided.
func (s *session) siftRest(out *buffer, b []byte, done bool) {
	if !s.withheld {
		s.passing(resp.Command{}, false)
		out.b = append(out.b, b...)
	}
	if done {
		s.pinSize, s.withheld = 0, false
	}
}

// standIn is what the server gets instead of a command that is denied.
func (s *session) standIn(cmd resp.Command) []byte {
	s.count(ClassDenied)
	s.mu.Lock()
	s.standIns++
	s.mu.Unlock()
	return s.p.denials.standIns[s.p.denials.rule(cmd)]
}

// unframe notes that the client has sent what is no command, and why. Unless the server is in the
// middle of one, it gets nonsense instead.
func (s *session) unframe(err error) {
	s.unframed = true
	s.mu.Lock()
	s.lastWord, s.nonsense = s.protocolReply(err), s.pinSize == 0
	s.mu.Unlock()
}

// The server is not told the client's own words, which it might read in another way, but something
// that no server takes for a command. It answers all that stands before it, though that may block for
// long, then so, and closes.
const (
	nonsense      = "*x\r\n"
	nonsenseReply = "-ERR Protocol error: invalid multibulk length\r\n"
)

// breakOff ends what a session sends to its pinned connection. The server answers what
// it has, and closes; the client hears the rest then.
func (s *session) breakOff() {
	s.mu.Lock()
	whole := s.nonsense
	s.mu.Unlock()
	switch {
	case whole:
		_ = s.pinned.WriteBody([]byte(nonsense), false)
	case s.pinned.CloseWrite() != nil:
		s.pinned.Close()
	}
}

// unknownCommand begins the reply to a stand-in. Behind it stand a quotation mark, of
// which servers have more than one kind, and the name.
const unknownCommand = "-ERR unknown command "

// unmask returns what can be passed on of b, with the replies to stand-ins turned into
// those of denials, and holds the longest end that may be the beginning of one. found
// is how many there were.
func (r *pipe) unmask(d *denials, b []byte) (pass []byte, found int) {
	b = append(r.masked, b...)
	r.masked = nil
	for {
		at := bytes.Index(b, []byte(unknownCommand))
		if at < 0 {
			n := len(b) - beginningOf(unknownCommand, b)
			r.masked = b[n:]
			return append(pass, b[:n]...), found
		}
		name := b[at+len(unknownCommand):]
		rule, size, ours, whole := d.refused(name)
		switch {
		case !whole:
			r.masked = b[at:]
			return append(pass, b[:at]...), found
		case ours:
			pass = append(append(pass, b[:at]...), d.replies[rule]...)
			b = name[size:]
			found++
		default:
			pass = append(pass, b[:at+len(unknownCommand)]...)
			b = name
		}
	}
}

// beginningOf is the length of the longest end of b with which whole, which is longer,
// begins.
func beginningOf(whole string, b []byte) int {
	n := min(len(b), len(whole)-1)
	for !bytes.HasPrefix([]byte(whole), b[len(b)-n:]) {
		n--
	}
	return n
}

// refused reads the rest of a reply that says that a command is unknown, if it is about
// a stand-in: which rule that stood for, and the size up to the end of the line. whole
// is false if more of it has to come before that can be said.
func (d *denials) refused(b []byte) (rule, size int, ours, whole bool) {
	known := min(max(len(b)-1, 0), len(d.token))
	end := bytes.Index(b, []byte("\r\n"))
	switch {
	case known > 0 && string(b[1:1+known]) != d.token[:known]:
		return 0, 0, false, true
	case known < len(d.token) || end < 0:
		return 0, 0, false, false
	}
	digits := b[1+known : end]
	digits = digits[:len(digits)-len(bytes.TrimLeft(digits, "0123456789"))]
	rule, err := strconv.Atoi(string(digits))
	return rule, end + len("\r\n"), err == nil && rule < len(d.replies), true
}

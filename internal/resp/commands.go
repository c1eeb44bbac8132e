package resp

import (
	"bytes"
	"slices"
	"unsafe"
)

// CommandScanner finds the end of each command that a client sends, and where its
// arguments lie. It accepts the part of what Redis accepts that has one reading
// only, and refuses the rest with Redis's texts.
//
// It differs from Redis where Redis guesses or waits: a byte that no valid header
// has is refused when it arrives, not when a CR follows; the byte behind a
// header's CR and the two behind a bulk must be the line end; a NUL in an inline
// line, at which Redis stops looking for the line's end, is refused as the
// oversized line that Redis would take it for.
//
// Make one with NewCommandScanner, or call Init on a value. Not for concurrent use.
type CommandScanner struct {
	limits Limits
	state  commandState
	inline bool
	mute   bool // spans are not recorded
	cr     bool // inline: the last byte seen was CR
	blank  bool // inline: nothing but blanks so far

	size   int64  // bytes of the command consumed by earlier calls
	header int    // bytes of the header under way
	num    number // the header's number
	start  int    // where the argument under way begins
	body   int64  // bytes of its payload still to come
	left   int    // arguments not yet complete

	args []Span
	err  *ProtocolError
}

type commandState uint8

const (
	commandIdle    commandState = iota // between commands
	commandLine                        // in an inline line
	commandCount                       // in the number behind '*'
	commandCountLF                     // at that header's LF
	commandDollar                      // at the '$' of the next argument
	commandLength                      // in the number behind '$'
	commandLengthLF
	commandBody
	commandBodyCR
	commandBodyLF
	commandFailed
)

const (
	// minArg is the size of the smallest argument: "$0\r\n\r\n".
	minArg = 6
	// keepSpans is how many spans a scanner keeps room for whatever its client
	// sends: 2 KiB, as there are thousands of idle clients.
	keepSpans = 128
)

// NewCommandScanner returns a scanner that applies l.
func NewCommandScanner(l Limits) *CommandScanner {
	return &CommandScanner{limits: l}
}

// Init makes the scanner as new, with the limits l.
func (s *CommandScanner) Init(l Limits) { *s = CommandScanner{limits: l} }

// SetLimits replaces the limits; the next header read obeys them.
func (s *CommandScanner) SetLimits(l Limits) { s.limits = l }

// Reset forgets the command under way, an error and any large table of spans; the
// limits stay. Between commands it gives back what one with many arguments took,
// which the scanner itself does only when smaller commands follow.
func (s *CommandScanner) Reset() {
	args := s.args
	*s = CommandScanner{limits: s.limits}
	if cap(args) <= keepSpans {
		s.args = args[:0]
	}
}

// Trim gives back between commands what one with many arguments took. It is for a client that is
// silent: the scanner itself does so when smaller commands follow.
func (s *CommandScanner) Trim() {
	if s.state == commandIdle && cap(s.args) > keepSpans {
		s.args = nil
	}
}

// Extra is how many bytes the table of arguments takes, beyond what any scanner keeps.
func (s *CommandScanner) Extra() int {
	return max(cap(s.args)-keepSpans, 0) * int(unsafe.Sizeof(Span{}))
}

// Args locates the arguments that are complete so far, counted from the command's
// first byte; valid until the first Scan after done. A finished command without
// any (*0, *-1, a blank line) is nothing to execute and answered by nobody. An
// inline command has one span, the line without its end, for AppendInline.
func (s *CommandScanner) Args() []Span { return s.args }

// Inline reports whether the current or just finished command is an inline line.
func (s *CommandScanner) Inline() bool { return s.inline }

// Size is how many bytes of the current or just finished command were consumed.
func (s *CommandScanner) Size() int64 { return s.size }

// Declared is the least that the whole command can measure in bytes, by what is
// known of it: what was consumed, the rest of the argument under way, and the
// smallest possible form of those to come. It shows a large command by its header.
func (s *CommandScanner) Declared() int64 {
	switch s.state {
	case commandIdle, commandFailed:
		return s.size
	case commandLine, commandCountLF:
		return s.size + 1
	case commandCount:
		return s.size + 2
	case commandDollar:
		return s.size + int64(s.left)*minArg
	case commandLength:
		return s.size + int64(max(minArg-s.header, 4)) + int64(s.left-1)*minArg
	case commandLengthLF:
		return s.size + 3 + int64(s.left-1)*minArg
	case commandBodyLF:
		return s.size + 1 + int64(s.left-1)*minArg
	default:
		return s.size + s.body + 2 + int64(s.left-1)*minArg
	}
}

// StopRecording makes the scanner add no spans for the rest of the current
// command, whose arguments may then be any number without costing memory. It may forget
// those that it has.
func (s *CommandScanner) StopRecording() {
	s.mute = true
	if cap(s.args) > keepSpans {
		s.args = nil
	}
}

// Scan consumes bytes of the current command from the start of b. It returns how
// many, and done when b[n-1] was the command's last byte; the next call starts a
// new one. Unless done, n is len(b). err is a *ProtocolError; every later call
// returns it again until Reset, and n then says nothing.
func (s *CommandScanner) Scan(b []byte) (n int, done bool, err error) {
	if s.state == commandIdle && len(b) > 0 {
		n = s.begin(b[0])
	}
	for n < len(b) && !done && s.state != commandFailed {
		switch s.state {
		case commandLine:
			n, done = s.scanLine(b, n)
		case commandCount:
			n = s.scanCount(b, n)
		case commandCountLF:
			n, done = s.endCount(b, n)
		case commandDollar:
			n, done = s.scanArgs(b, n)
		case commandLength:
			n = s.scanNumber(b, n, commandLengthLF, reasonBulk, reasonBulkLine)
		case commandLengthLF:
			n = s.endLength(b, n)
		default:
			n, done = s.scanBody(b, n)
		}
	}
	if s.state == commandFailed {
		return n, false, s.err
	}
	s.size += int64(n)
	if done {
		s.state = commandIdle
	}
	return n, done, nil
}

// Empty is how many bytes at the start of b are whole commands without any argument, in their
// usual forms: blank lines and *0. A client that sends nothing else costs little so.
func Empty(b []byte) (n int) {
	for {
		switch rest := b[n:]; {
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			n += 2
		case len(rest) > 0 && rest[0] == '\n':
			n++
		case len(rest) > 3 && rest[0] == '*' && rest[1] == '0' && rest[2] == '\r' && rest[3] == '\n':
			n += 4
		default:
			return n
		}
	}
}

// begin starts a command with its first byte and returns how many bytes it took:
// an inline line's first byte is part of the line.
func (s *CommandScanner) begin(c byte) int {
	if cap(s.args) > keepSpans && len(s.args) < cap(s.args)/4 {
		s.args = nil // large commands are not this client's habit
	}
	s.args = s.args[:0]
	s.size, s.left = 0, 0
	s.mute = false
	if s.inline = c != '*'; s.inline {
		s.cr, s.blank = false, true
		s.state = commandLine
		return 0
	}
	s.header, s.num = 1, number{}
	s.state = commandCount
	return 1
}

func (s *CommandScanner) fail(reason string) {
	s.err = &ProtocolError{Reason: reason}
	s.state = commandFailed
}

// scanLine looks for the end of an inline line: LF, and a CR before it if there.
func (s *CommandScanner) scanLine(b []byte, n int) (int, bool) {
	part, end := b[n:], bytes.IndexByte(b[n:], '\n')
	if end >= 0 {
		part = part[:end]
	}
	before := s.size + int64(n+len(part))
	if before > int64(s.limits.MaxInline) || bytes.IndexByte(part, 0) >= 0 {
		s.fail(reasonInline)
		return n, false
	}
	for i := 0; s.blank && i < len(part); i++ {
		s.blank = isSpace(part[i])
	}
	if len(part) > 0 {
		s.cr = part[len(part)-1] == '\r'
	}
	if end < 0 {
		return len(b), false
	}
	if s.cr {
		before--
	}
	if !s.blank {
		s.args = append(s.args, Span{Start: 0, End: int(before)})
	}
	return n + end + 1, true
}

// scanCount reads the number of arguments, at once if the header is whole.
func (s *CommandScanner) scanCount(b []byte, n int) int {
	if n == 1 { // begin has just consumed b[0]
		if v, h := shortLength(b); v > 0 && v <= s.limits.MaxArgs {
			s.left = v
			s.state = commandDollar
			return h
		}
	}
	return s.scanNumber(b, n, commandCountLF, reasonCount, reasonCountLine)
}

// scanNumber reads a header's number up to its CR, and then goes to state next.
func (s *CommandScanner) scanNumber(b []byte, n int, next commandState, bad, long string) int {
	for ; n < len(b); n++ {
		c := b[n]
		if c == '\r' {
			s.state = next
			return n + 1
		}
		if !s.num.feed(c) {
			s.fail(bad)
			return n
		}
		if s.header++; s.header > s.limits.MaxInline {
			s.fail(long)
			return n
		}
	}
	return n
}

// endCount judges the number of arguments at its header's LF.
func (s *CommandScanner) endCount(b []byte, n int) (int, bool) {
	v, ok := s.num.value()
	if !ok || b[n] != '\n' {
		s.fail(reasonCount)
		return n, false
	}
	if v <= 0 {
		return n + 1, true
	}
	if reason := s.limits.refuseArgs(v); reason != "" {
		s.fail(reason)
		return n, false
	}
	s.left = int(v)
	s.state = commandDollar
	return n + 1, false
}

// scanArgs takes arguments that lie whole in b, and begins the next where one
// does not.
func (s *CommandScanner) scanArgs(b []byte, n int) (int, bool) {
	for n < len(b) && b[n] == '$' {
		v, h := shortLength(b[n:])
		end := n + h + v
		if h == 0 || int64(v) > s.limits.MaxBulk || len(b)-end < 2 || b[end] != '\r' || b[end+1] != '\n' {
			break
		}
		s.record(n+h, end)
		n = end + 2
		if s.left--; s.left == 0 {
			return n, true
		}
	}
	if n == len(b) {
		return n, false
	}
	if b[n] != '$' {
		s.fail(reasonExpected(b[n]))
		return n, false
	}
	s.header, s.num = 1, number{}
	s.state = commandLength
	return n + 1, false
}

// record notes an argument by its place in the buffer under way.
func (s *CommandScanner) record(start, end int) {
	if !s.mute {
		at := int(s.size)
		if n := len(s.args); n >= keepSpans && n == cap(s.args) { // in few steps: each leaves garbage
			s.args = slices.Grow(s.args, min(max(s.left, 1), 3*n))
		}
		s.args = append(s.args, Span{Start: at + start, End: at + end})
	}
}

// endLength judges an argument's length at its header's LF.
func (s *CommandScanner) endLength(b []byte, n int) int {
	v, ok := s.num.value()
	if !ok || b[n] != '\n' {
		s.fail(reasonBulk)
		return n
	}
	if reason := s.limits.refuseBulk(v); reason != "" {
		s.fail(reason)
		return n
	}
	s.start = int(s.size) + n + 1
	s.body = v
	s.state = commandBody
	return n + 1
}

// scanBody skips an argument's payload and insists on the line end behind it.
func (s *CommandScanner) scanBody(b []byte, n int) (int, bool) {
	if s.state == commandBody {
		if rest := int64(len(b) - n); rest <= s.body {
			s.body -= rest
			return len(b), false
		}
		n += int(s.body)
		s.body = 0
		s.state = commandBodyCR
	}
	if s.state == commandBodyCR {
		if b[n] != '\r' {
			s.fail(reasonBulk)
			return n, false
		}
		s.state = commandBodyLF
		if n++; n == len(b) {
			return n, false
		}
	}
	if b[n] != '\n' {
		s.fail(reasonBulk)
		return n, false
	}
	if !s.mute {
		s.args = append(s.args, Span{Start: s.start, End: int(s.size) + n - 1})
	}
	s.left--
	s.state = commandDollar
	return n + 1, s.left == 0
}

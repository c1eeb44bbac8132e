package resp

import "bytes"

// Character classes of the lines whose content is checked.
const (
	classDigit = 1 << iota
	classSign
	classFloat // what doubles have besides digits and signs
	classBool
)

var classes = func() (t [256]uint8) {
	for c := '0'; c <= '9'; c++ {
		t[c] = classDigit
	}
	t['+'], t['-'] = classSign, classSign
	for _, c := range ".eEinfaINFA" {
		t[c] |= classFloat
	}
	t['t'] |= classBool
	t['f'] |= classBool
	return t
}()

// mayFollow reports whether c may stand at place at (0 is the first) of the line
// of a value of type typ.
func mayFollow(typ, c byte, at int) bool {
	class := classes[c]
	switch typ {
	case ':':
		return class&classDigit != 0 || class&classSign != 0 && at == 0
	case ',':
		return class&(classDigit|classSign|classFloat) != 0
	case '#':
		return class&classBool != 0 && at == 0
	default: // '_' and '.' have no content
		return false
	}
}

// mayEnd reports whether the line of a value of type typ may end after n bytes,
// the last of which is last.
func mayEnd(typ, last byte, n int) bool {
	switch typ {
	case ':':
		return n > 0 && classes[last]&classDigit != 0
	case ',', '#':
		return n > 0
	default:
		return n == 0
	}
}

// scanLine checks a line byte by byte up to its CR.
func (s *ReplyScanner) scanLine(b []byte, n int) int {
	for ; n < len(b); n++ {
		c := b[n]
		if c == '\r' {
			if !mayEnd(s.typ, s.last, s.digits) {
				s.fail(reasonReplyLine)
				return n
			}
			s.state = replyLF
			return n + 1
		}
		if !mayFollow(s.typ, c, s.digits) {
			s.fail(reasonReplyLine)
			return n
		}
		s.last = c
		s.digits++
	}
	return n
}

// endLine completes a checked line at its LF.
func (s *ReplyScanner) endLine(b []byte, n int) (int, bool) {
	if b[n] != '\n' {
		s.fail(reasonReplyLine)
		return n, false
	}
	if s.typ != '.' {
		return n + 1, s.complete()
	}
	top := len(s.frames) - 1
	f := s.frames[top]
	if f.pairs && f.odd {
		s.fail(reasonReplyPairs)
		return n, false
	}
	s.frames = s.frames[:top]
	s.owed = f.owed
	return n + 1, s.complete()
}

// shortLine is how far a line's end is sought byte by byte, which for the usual
// "+OK" costs less than a call that is fast on long lines.
const shortLine = 24

// wholeValue returns the size of the value at the start of b if it is a scalar of
// a frequent type, valid and whole; 0 if not, and then the byte-wise way decides.
func wholeValue(b []byte) int {
	switch b[0] {
	case '$':
		return wholeBulk(b)
	case '+', '-', '(':
		return wholeText(b)
	case ':':
		return wholeInteger(b)
	}
	return 0
}

func wholeBulk(b []byte) int {
	n, h := shortLength(b)
	if h == 0 {
		if len(b) >= 5 && string(b[1:5]) == "-1\r\n" {
			return 5
		}
		return 0
	}
	end := h + n + 2
	if end > len(b) || b[end-2] != '\r' || b[end-1] != '\n' {
		return 0
	}
	return end
}

func wholeText(b []byte) int {
	n := 1
	for short := min(len(b), shortLine); n < short; n++ {
		if b[n] == '\n' && b[n-1] == '\r' {
			return n + 1
		}
	}
	for n < len(b) {
		i := bytes.IndexByte(b[n:], '\n')
		if i < 0 {
			break
		}
		n += i + 1
		if b[n-2] == '\r' {
			return n
		}
	}
	return 0
}

func wholeInteger(b []byte) int {
	n := 1
	if len(b) > 1 && classes[b[1]] == classSign {
		n++
	}
	from := n
	for n < len(b) && classes[b[n]] == classDigit {
		n++
	}
	if n == from || n+1 >= len(b) || b[n] != '\r' || b[n+1] != '\n' {
		return 0
	}
	return n + 2
}

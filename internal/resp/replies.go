package resp

import "bytes"

// ReplyScanner finds the end of each reply that a server sends, in RESP2 and
// RESP3. The zero value is ready. Not for concurrent use.
//
// Nesting is a count, not a stack: an aggregate of n elements replaces one value
// owed by n, so a million nested arrays cost what one costs. Only aggregates
// without a count ("*?") need to be remembered, and their depth is bounded.
//
// A value's content is checked only for the types where that is cheap and tells a
// stream that lost its step. A simple line ends at the first CRLF; a lone CR or
// LF before it belongs to the text, as in Redis's own client. A big number is such a
// line: servers send what a script returned as one without looking at it.
type ReplyScanner struct {
	state replyState
	kind  byte // type of the top-level value
	typ   byte // type of the value under way
	open  bool // its length is '?'
	last  byte // checked line: the byte before
	cr    bool // text: the last byte seen was CR

	size   int64  // bytes of the reply consumed by earlier calls
	owed   int64  // values to come in the innermost streamed aggregate, or at all
	num    number // the header's number
	digits int    // content bytes of a checked line
	body   int64  // payload bytes to come

	frames []replyFrame
	err    *ProtocolError
}

// replyFrame is an aggregate without a count.
type replyFrame struct {
	owed  int64 // values still owed outside of it, itself included
	pairs bool  // a map: must end after an even number of values
	odd   bool
}

type replyState uint8

const (
	replyIdle     replyState = iota // between replies
	replyType                       // at a value's type byte
	replyText                       // in a simple line
	replyLine                       // in a line whose content is checked
	replyLength                     // in the number of a header
	replyLF                         // at the LF of a checked line
	replyLengthLF                   // at the LF of a header
	replyBody
	replyBodyCR
	replyBodyLF
	replyChunk // at the ';' of a streamed string's next chunk
	replyFailed
)

const (
	// maxOwed bounds the values that a reply may announce, so that sums and
	// products of counts stay far from overflow.
	maxOwed = 1 << 56
	// maxStreamDepth bounds the nesting of aggregates without a count. Redis sends
	// none at all.
	maxStreamDepth = 128
	// minValue is the size of the smallest value: "_\r\n".
	minValue = 3
)

// Kind is the type byte of the current or just finished reply, attributes before
// it skipped; 0 as long as it was not seen.
func (s *ReplyScanner) Kind() byte { return s.kind }

// Size is how many bytes of the current or just finished reply were consumed.
func (s *ReplyScanner) Size() int64 { return s.size }

// Announced is the least that the whole reply can measure in bytes, by what is
// known of it: what was consumed, the rest of the payload under way, and the
// smallest possible form of the values still owed.
func (s *ReplyScanner) Announced() int64 {
	switch s.state {
	case replyIdle, replyFailed:
		return s.size
	case replyType:
		return s.size + s.owed*minValue + int64(len(s.frames))*minValue
	case replyBody, replyBodyCR:
		return s.size + s.body + 2 + s.owedBeyond()
	default:
		return s.size + 1 + s.owedBeyond()
	}
}

// owedBeyond is the smallest size of what follows the value under way. A "."
// under way is not to come any more.
func (s *ReplyScanner) owedBeyond() int64 {
	ends := int64(len(s.frames))
	if s.typ == '.' {
		ends--
	}
	return max(s.owed-1, 0)*minValue + ends*minValue
}

// Reset forgets the reply under way and an error.
func (s *ReplyScanner) Reset() { *s = ReplyScanner{frames: s.frames[:0]} }

// Scan consumes bytes of the current reply from the start of b. It returns how
// many, and done when b[n-1] was the reply's last byte; the next call starts a new
// one. Unless done, n is len(b). err is a *ProtocolError; every later call returns
// it again until Reset, and n then says nothing.
func (s *ReplyScanner) Scan(b []byte) (n int, done bool, err error) {
	if s.state == replyIdle {
		if len(b) == 0 {
			return 0, false, nil
		}
		if n = wholeValue(b); n > 0 {
			s.kind, s.size = b[0], int64(n)
			return n, true, nil
		}
		s.kind, s.size, s.owed = 0, 0, 1
		s.frames = s.frames[:0]
		s.state = replyType
	}
	for n < len(b) && !done && s.state != replyFailed {
		switch s.state {
		case replyType:
			n, done = s.scanValues(b, n)
		case replyText:
			n, done = s.scanText(b, n)
		case replyLine:
			n = s.scanLine(b, n)
		case replyLength:
			n = s.scanLength(b, n)
		case replyLF:
			n, done = s.endLine(b, n)
		case replyLengthLF:
			n, done = s.endLength(b, n)
		case replyChunk:
			n = s.beginChunk(b, n)
		default:
			n, done = s.scanBody(b, n)
		}
	}
	if s.state == replyFailed {
		return n, false, s.err
	}
	s.size += int64(n)
	if done {
		s.state = replyIdle
	}
	return n, done, nil
}

func (s *ReplyScanner) fail(reason string) {
	s.err = &ProtocolError{Reason: reason}
	s.state = replyFailed
}

// scanValues takes values that lie whole in b, and begins the next where one
// does not.
func (s *ReplyScanner) scanValues(b []byte, n int) (int, bool) {
	for s.owed > 0 && s.kind != 0 && n < len(b) {
		m := wholeValue(b[n:])
		if m == 0 {
			break
		}
		n += m
		if s.complete() {
			return n, true
		}
	}
	if n == len(b) {
		return n, false
	}
	return s.begin(b, n)
}

// complete settles one value, and reports whether the reply is complete with it.
func (s *ReplyScanner) complete() bool {
	s.state = replyType
	s.owed--
	return s.owed == 0 && len(s.frames) == 0
}

// begin starts a value with its type byte, and finishes it if it is a header that
// lies whole in b.
func (s *ReplyScanner) begin(b []byte, n int) (int, bool) {
	c := b[n]
	if s.owed == 0 && c != '.' { // one more in an aggregate without a count
		f := &s.frames[len(s.frames)-1]
		f.odd = !f.odd
		s.owed = 1
	} else if c == '.' && s.owed != 0 {
		s.fail(reasonReplyType)
		return n, false
	}
	if s.kind == 0 && s.owed == 1 && len(s.frames) == 0 && c != '|' {
		s.kind = c
	} else if c == '>' {
		s.fail(reasonReplyPush)
		return n, false
	}
	s.typ = c
	switch c {
	case '+', '-', '(':
		s.cr = false
		s.state = replyText
	case ':', ',', '#', '_', '.':
		s.digits = 0
		s.state = replyLine
	case '$', '*', '%', '~', '>', '|', '!', '=':
		s.open, s.num = false, number{}
		if v, h := shortLength(b[n:]); h > 0 {
			return n + h, s.length(int64(v))
		}
		s.state = replyLength
	default:
		s.fail(reasonReplyType)
		return n, false
	}
	return n + 1, false
}

// scanText looks for the end of a simple line.
func (s *ReplyScanner) scanText(b []byte, n int) (int, bool) {
	for n < len(b) {
		i := bytes.IndexByte(b[n:], '\n')
		if i < 0 {
			s.cr = b[len(b)-1] == '\r'
			return len(b), false
		}
		if i > 0 {
			s.cr = b[n+i-1] == '\r'
		}
		n += i + 1
		if s.cr {
			return n, s.complete()
		}
	}
	return n, false
}

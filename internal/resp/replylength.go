package resp

// scanLength reads a header's number, or '?', up to its CR. Numbers beyond int64
// are refused at the first digit too many: a header has no business being long.
func (s *ReplyScanner) scanLength(b []byte, n int) int {
	for ; n < len(b); n++ {
		c := b[n]
		switch {
		case c == '\r':
			s.state = replyLengthLF
			return n + 1
		case c == '?' && !s.open && s.num == number{}:
			s.open = true
		case s.open || !s.num.feed(c) || s.num.digits > maxDigits:
			s.fail(reasonReplyLength)
			return n
		}
	}
	return n
}

// endLength judges a header at its LF.
func (s *ReplyScanner) endLength(b []byte, n int) (int, bool) {
	if b[n] != '\n' {
		s.fail(reasonReplyLength)
		return n, false
	}
	if s.open {
		s.stream()
		return n + 1, false
	}
	v, ok := s.num.value()
	if !ok {
		s.fail(reasonReplyLength)
		return n, false
	}
	return n + 1, s.length(v)
}

// length acts on a header's number, and reports whether the reply is complete
// with it: a null, or an aggregate of nothing.
func (s *ReplyScanner) length(v int64) bool {
	if v < 0 {
		if v == -1 && (s.typ == '$' || s.typ == '*') {
			return s.complete()
		}
		s.fail(reasonReplyLength)
		return false
	}
	switch s.typ {
	case ';':
		if v == 0 {
			return s.complete()
		}
		return s.payload(v)
	case '$', '!', '=':
		return s.payload(v)
	case '%', '|':
		if v > maxOwed/2 {
			s.fail(reasonReplyCount)
			return false
		}
		v *= 2
	}
	return s.aggregate(v)
}

// payload begins a body of v bytes.
func (s *ReplyScanner) payload(v int64) bool {
	if v > maxOwed {
		s.fail(reasonReplyLength)
		return false
	}
	s.body = v
	s.state = replyBody
	return false
}

// aggregate owes v values more. An attribute's are owed besides the value that it
// precedes; another aggregate is settled by them.
func (s *ReplyScanner) aggregate(v int64) bool {
	if v > maxOwed-s.owed {
		s.fail(reasonReplyCount)
		return false
	}
	s.owed += v
	if s.typ == '|' {
		s.state = replyType
		return false
	}
	return s.complete()
}

// stream begins a string that comes in chunks, or an aggregate that ends with a
// "." instead of after a count.
func (s *ReplyScanner) stream() {
	switch s.typ {
	case '$':
		s.state = replyChunk
	case '*', '%', '~', '>':
		if len(s.frames) == maxStreamDepth {
			s.fail(reasonReplyDepth)
			return
		}
		s.frames = append(s.frames, replyFrame{owed: s.owed, pairs: s.typ == '%'})
		s.owed = 0
		s.state = replyType
	default:
		s.fail(reasonReplyLength)
	}
}

// beginChunk starts the next part of a streamed string.
func (s *ReplyScanner) beginChunk(b []byte, n int) int {
	if b[n] != ';' {
		s.fail(reasonReplyChunk)
		return n
	}
	s.typ = ';'
	s.open, s.num = false, number{}
	s.state = replyLength
	return n + 1
}

// scanBody skips a payload and insists on the line end behind it.
func (s *ReplyScanner) scanBody(b []byte, n int) (int, bool) {
	if s.state == replyBody {
		if rest := int64(len(b) - n); rest <= s.body {
			s.body -= rest
			return len(b), false
		}
		n += int(s.body)
		s.body = 0
		s.state = replyBodyCR
	}
	if s.state == replyBodyCR {
		if b[n] != '\r' {
			s.fail(reasonReplyEnd)
			return n, false
		}
		s.state = replyBodyLF
		if n++; n == len(b) {
			return n, false
		}
	}
	if b[n] != '\n' {
		s.fail(reasonReplyEnd)
		return n, false
	}
	if s.typ == ';' {
		s.state = replyChunk
		return n + 1, false
	}
	return n + 1, s.complete()
}

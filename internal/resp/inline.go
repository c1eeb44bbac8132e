package resp

// AppendInline splits an inline command as Redis's sdssplitargs does and appends
// it in canonical multibulk form to dst.
//
// line comes without its line end. The spans appended to spans locate each
// argument, counted from the command's first byte (not from dst's). A line
// without words leaves both slices as they were. Quotes that do not close, or
// close in the middle of a word, are a *ProtocolError; dst and spans are then
// returned as they were.
//
// The line is split twice, once to count and once to write, because the count
// and the lengths stand before the data and escapes make words shorter.
func AppendInline(dst []byte, spans []Span, line []byte) ([]byte, []Span, error) {
	words, ok := countWords(line)
	if !ok {
		return dst, spans, &ProtocolError{Reason: reasonQuotes}
	}
	if words == 0 {
		return dst, spans, nil
	}
	start := len(dst)
	dst = appendHeader(dst, '*', words)
	for rest := line; words > 0; words-- {
		probe := word{rest: rest}
		size := probe.skip()
		dst = appendHeader(dst, '$', size)
		from := len(dst) - start
		w := word{rest: rest}
		for c, more := w.next(); more; c, more = w.next() {
			dst = append(dst, c)
		}
		spans = append(spans, Span{Start: from, End: from + size})
		dst = append(dst, '\r', '\n')
		rest = w.rest
	}
	return dst, spans, nil
}

// countWords returns how many arguments line has, and false for bad quotes.
func countWords(line []byte) (int, bool) {
	count := 0
	for w := (word{rest: line}); ; w = (word{rest: w.rest}) {
		w.skip()
		switch {
		case w.bad:
			return 0, false
		case w.mode == wordBefore:
			return count, true
		}
		count++
	}
}

// word yields the bytes of the next word of a line, quotes and escapes resolved.
type word struct {
	rest []byte
	mode wordMode
	bad  bool
}

type wordMode uint8

const (
	wordBefore wordMode = iota // in the blanks before the word
	wordPlain
	wordDouble // between double quotes
	wordSingle // between single quotes
	wordAfter
)

// next returns the word's next byte, or false at its end, at the line's end and
// when bad was set.
func (w *word) next() (byte, bool) {
	if w.mode == wordBefore {
		w.skipBlanks()
	}
	for w.mode != wordBefore && w.mode != wordAfter {
		c, got := w.take()
		if got {
			return c, true
		}
	}
	return 0, false
}

// skip runs to the word's end and returns how many bytes it has.
func (w *word) skip() int {
	size := 0
	for _, more := w.next(); more; _, more = w.next() {
		size++
	}
	return size
}

func (w *word) skipBlanks() {
	i := 0
	for i < len(w.rest) && isSpace(w.rest[i]) {
		i++
	}
	w.rest = w.rest[i:]
	if len(w.rest) > 0 {
		w.mode = wordPlain
	}
}

// take makes one step in the word and reports whether it yielded a byte.
func (w *word) take() (byte, bool) {
	if len(w.rest) == 0 {
		w.bad = w.mode != wordPlain
		w.mode = wordAfter
		return 0, false
	}
	c := w.rest[0]
	switch w.mode {
	case wordDouble:
		return w.takeDouble(c)
	case wordSingle:
		return w.takeSingle(c)
	default:
		return w.takePlain(c)
	}
}

// takePlain ends at fewer blanks than skipBlanks skips: Redis keeps a vertical
// tab or form feed inside a word.
func (w *word) takePlain(c byte) (byte, bool) {
	w.rest = w.rest[1:]
	switch c {
	case ' ', '\n', '\r', '\t':
		w.mode = wordAfter
	case '"':
		w.mode = wordDouble
	case '\'':
		w.mode = wordSingle
	default:
		return c, true
	}
	return 0, false
}

func (w *word) takeDouble(c byte) (byte, bool) {
	switch {
	case c == '\\' && len(w.rest) >= 4 && w.rest[1] == 'x' && isHex(w.rest[2]) && isHex(w.rest[3]):
		c = unhex(w.rest[2])<<4 | unhex(w.rest[3])
		w.rest = w.rest[4:]
		return c, true
	case c == '\\' && len(w.rest) >= 2:
		c = unescape(w.rest[1])
		w.rest = w.rest[2:]
		return c, true
	case c == '"':
		w.closeQuote()
		return 0, false
	}
	w.rest = w.rest[1:]
	return c, true
}

func (w *word) takeSingle(c byte) (byte, bool) {
	switch {
	case c == '\\' && len(w.rest) >= 2 && w.rest[1] == '\'':
		w.rest = w.rest[2:]
		return '\'', true
	case c == '\'':
		w.closeQuote()
		return 0, false
	}
	w.rest = w.rest[1:]
	return c, true
}

// closeQuote ends the word; what follows must be a blank or the line's end.
func (w *word) closeQuote() {
	w.rest = w.rest[1:]
	w.mode = wordAfter
	w.bad = len(w.rest) > 0 && !isSpace(w.rest[0])
}

// isSpace is C's isspace in the C locale, which Redis keeps for character types.
func isSpace(c byte) bool { return c == ' ' || c-'\t' < 5 }

func isHex(c byte) bool { return c-'0' < 10 || c|0x20-'a' < 6 }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

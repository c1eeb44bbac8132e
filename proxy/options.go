package proxy

import (
	"math"
	"strconv"

	"streamproxy/internal/resp"
)

// readScan is what the options of an XREAD or XREADGROUP say.
type readScan struct {
	// block is the position of the last BLOCK option's value, 0 without the option.
	block int
	// noack is set if NOACK is given, streams is the position behind STREAMS.
	noack   bool
	streams int
	// odd is set if an option is not one that is known here. What follows it is
	// then a guess.
	odd bool
}

// scanRead walks the options of XREAD and XREADGROUP up to STREAMS as the
// server does: by position, in any case. So a group or consumer may be called
// BLOCK or STREAMS, and a stream anything.
func scanRead(c resp.Command) readScan {
	var s readScan
	n := c.Len()
	for i := 1; i < n; i++ {
		arg, rest := c.Arg(i), n-1-i
		switch {
		case rest >= 1 && fold(arg, "streams"):
			s.streams = i + 1
			return s
		case rest >= 1 && fold(arg, "block"):
			i++
			s.block = i
		case rest >= 1 && (fold(arg, "count") || fold(arg, "claim")):
			i++
		case rest >= 2 && fold(arg, "group"):
			i += 2
		case fold(arg, "noack"):
			s.noack = true
		default:
			s.odd = true
		}
	}
	s.odd = true
	return s
}

// blockOption finds the BLOCK option of an XREAD or XREADGROUP: the position
// of its value and the value in milliseconds, 0 for ever. If the option is
// given several times the last one counts, as on the server. A value that the
// server will refuse is ms = -1.
func blockOption(c resp.Command) (pos int, ms int64, ok bool) {
	s := scanRead(c)
	if s.block == 0 {
		return 0, 0, false
	}
	return s.block, parseMillis(c.Arg(s.block)), true
}

// blockTimeout finds the timeout of a blocking pop: the position of the
// argument and its value in milliseconds, rounded up as the server does, 0 for
// ever. BLMPOP and BZMPOP have it first, the others last. A value that is not a
// plain decimal number of seconds within range is ms = -1; the server may still
// accept it (hexadecimal). ok is false for every other command.
func blockTimeout(c resp.Command) (pos int, ms int64, ok bool) {
	var buf [maxNameLen]byte
	name, _ := lowered(&buf, c.Arg(0))
	switch string(name) {
	case "blmpop", "bzmpop":
		pos = 1
	case "blpop", "brpop", "brpoplpush", "blmove", "bzpopmin", "bzpopmax":
		pos = c.Len() - 1
	}
	if pos < 1 || pos >= c.Len() {
		return 0, 0, false
	}
	return pos, parseSeconds(c.Arg(pos)), true
}

// parseMillis reads a timeout the way the server reads an integer: no sign
// but minus, no leading zero, no space. It returns -1 for what is refused, a
// negative number included.
func parseMillis(b []byte) int64 {
	if len(b) == 0 || len(b) > 1 && b[0] == '0' {
		return -1
	}
	var n int64
	for _, d := range b {
		if d < '0' || d > '9' || n > (math.MaxInt64-int64(d-'0'))/10 {
			return -1
		}
		n = n*10 + int64(d-'0')
	}
	return n
}

// parseSeconds reads a timeout in seconds with a fraction and returns whole
// milliseconds, or -1 for what it cannot read.
func parseSeconds(b []byte) int64 {
	seconds, err := strconv.ParseFloat(string(b), 64)
	ms := math.Ceil(seconds * 1000)
	if err != nil || !(ms >= 0 && ms < math.MaxInt64) {
		return -1
	}
	return int64(ms)
}

// fold reports whether b is word in any case. The word consists of lower-case
// letters, for which setting one bit is enough.
func fold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		if b[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

// hasOption reports whether word stands anywhere behind the first argument.
func hasOption(c resp.Command, word string) bool {
	for i := 2; i < c.Len(); i++ {
		if fold(c.Arg(i), word) {
			return true
		}
	}
	return false
}

package resp

// number reads a decimal in the only spelling that Redis's string2ll accepts, a
// byte at a time: an optional '-', no '+', no leading zero, no "-0".
type number struct {
	n      uint64
	digits int
	neg    bool
}

// maxDigits is the length of the largest int64.
const maxDigits = 19

// feed takes the next byte and reports whether a canonical decimal may go on
// with it. Digits beyond int64 are accepted here and refused by value, so that an
// overlong header can still be told from a malformed one.
func (d *number) feed(c byte) bool {
	if c == '-' && d.digits == 0 && !d.neg {
		d.neg = true
		return true
	}
	if c-'0' > 9 {
		return false
	}
	if d.n == 0 && (d.digits > 0 || c == '0' && d.neg) {
		return false
	}
	if d.digits < maxDigits {
		d.n = d.n*10 + uint64(c-'0')
	}
	if d.digits <= maxDigits {
		d.digits++
	}
	return true
}

// value returns the number, and false if there were no digits or too many.
func (d *number) value() (int64, bool) {
	if d.digits == 0 || d.digits > maxDigits {
		return 0, false
	}
	if d.neg {
		return -int64(d.n), d.n <= 1<<63
	}
	return int64(d.n), d.n < 1<<63
}

// shortMax is how many bytes shortLength looks at: a type, nine digits, CRLF.
const shortMax = 12

// shortLength reads a header that lies whole at the start of b: one type byte,
// which it does not look at, up to nine digits in canonical form, CRLF. It returns
// the number and the header's length. A length of 0 means: not such a header, or
// not all of it; the byte-wise way decides.
func shortLength(b []byte) (n, header int) {
	if len(b) > shortMax {
		b = b[:shortMax]
	}
	i := 1
	for ; i < len(b); i++ {
		c := b[i] - '0'
		if c > 9 {
			break
		}
		n = n*10 + int(c)
	}
	if i == 1 || i+1 >= len(b) || b[i] != '\r' || b[i+1] != '\n' {
		return 0, 0
	}
	if b[1] == '0' && i > 2 {
		return 0, 0
	}
	return n, i + 2
}

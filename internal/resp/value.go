package resp

import (
	"bytes"
	"errors"
	"strconv"
)

// Value is a decoded reply. It serves the few places that must understand one;
// the data path frames replies and never decodes them.
type Value struct {
	// Kind is the type byte.
	Kind byte
	// Null is set for the nulls of both protocol versions.
	Null bool
	// Text is the payload of everything that is not an aggregate; it aliases the
	// input.
	Text []byte
	// Elems are the elements of an aggregate; of a map, keys and values in turn.
	Elems []Value
}

// maxDepth bounds the nesting of what Parse decodes. Replies of stream commands
// are five deep.
const maxDepth = 32

var (
	errShort = errors.New("resp: value is incomplete")
	errDeep  = errors.New("resp: value is nested too deeply")
	errKind  = errors.New("resp: unknown type of value")
)

// Parse decodes the value at the start of b and returns how many bytes it takes.
// Attributes are skipped; streamed types are refused.
func Parse(b []byte) (Value, int, error) { return parse(b, maxDepth) }

func parse(b []byte, depth int) (Value, int, error) {
	if depth == 0 {
		return Value{}, 0, errDeep
	}
	end := bytes.Index(b, []byte("\r\n"))
	if end < 1 {
		return Value{}, 0, errShort
	}
	v, line, pos := Value{Kind: b[0]}, b[1:end], end+2
	switch v.Kind {
	case '+', '-', ':', '#', ',', '(':
		v.Text = line
		return v, pos, nil
	case '_':
		v.Null = true
		return v, pos, nil
	}
	n, err := strconv.Atoi(string(line))
	if err != nil {
		return Value{}, 0, errKind
	}
	switch v.Kind {
	case '$', '=', '!':
		return parseBulk(v, b, pos, n)
	case '*', '~', '>':
	case '%', '|':
		n *= 2
	default:
		return Value{}, 0, errKind
	}
	if n < 0 {
		v.Null = true
		return v, pos, nil
	}
	for range n {
		e, m, err := parse(b[pos:], depth-1)
		if err != nil {
			return Value{}, 0, err
		}
		v.Elems = append(v.Elems, e)
		pos += m
	}
	if v.Kind == '|' {
		next, m, err := parse(b[pos:], depth-1)
		return next, pos + m, err
	}
	return v, pos, nil
}

func parseBulk(v Value, b []byte, pos, n int) (Value, int, error) {
	if n < 0 {
		v.Null = true
		return v, pos, nil
	}
	if n > len(b)-pos-2 {
		return Value{}, 0, errShort
	}
	v.Text = b[pos : pos+n]
	return v, pos + n + 2, nil
}

package reclaim

import (
	"bytes"
	"errors"
	"strconv"

	"streamproxy/internal/resp"
)

// errShape is a reply that is not what the command can be answered with.
var errShape = errors.New("reclaim: unexpected reply")

// elements cuts an array into the raw frames of its elements. A null array has
// none.
func elements(raw []byte) ([][]byte, error) {
	n, pos := arrayHead(raw)
	if pos == 0 {
		return nil, errShape
	}
	var list [][]byte
	for range n {
		_, size, err := resp.Parse(raw[pos:])
		if err != nil {
			return nil, err
		}
		list = append(list, raw[pos:pos+size:pos+size])
		pos += size
	}
	return list, nil
}

// arrayHead reads how many elements an array has, a null array none, and where they begin:
// at 0 if it is no array.
func arrayHead(raw []byte) (n, pos int) {
	end := bytes.Index(raw, crlf)
	if end < 0 || raw[0] != '*' {
		return 0, 0
	}
	n, err := strconv.Atoi(string(raw[1:end]))
	if err != nil {
		return 0, 0
	}
	return max(n, 0), end + len(crlf)
}

// frames cuts n consecutive replies into frames.
func frames(raw []byte, n int) ([][]byte, error) {
	var list [][]byte
	for range n {
		_, size, err := resp.Parse(raw)
		if err != nil {
			return nil, err
		}
		list = append(list, raw[:size:size])
		raw = raw[size:]
	}
	return list, nil
}

// isError reports whether a reply is an error.
func isError(raw []byte) bool { return len(raw) > 0 && (raw[0] == '-' || raw[0] == '!') }

// isNull reports whether a reply is the null of a timeout, in either protocol.
func isNull(raw []byte) bool {
	return len(raw) == 0 || raw[0] == '_' || len(raw) > 1 && raw[1] == '-' && (raw[0] == '*' || raw[0] == '$')
}

// errorCode is the first word of an error reply, of which the beginning will do.
func errorCode(raw []byte) string {
	if !isError(raw) {
		return ""
	}
	text := raw[1:]
	if raw[0] == '!' { // a length comes first
		_, text, _ = bytes.Cut(raw, crlf)
	}
	text, _, _ = bytes.Cut(text, crlf)
	code, _, _ := bytes.Cut(text, []byte(" "))
	return string(code)
}

var crlf = []byte("\r\n")

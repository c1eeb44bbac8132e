package reclaim

import (
	"strconv"

	"github.com/tidwall/redcon"

	"streamproxy/internal/resp"
)

// Replies that are the same in both versions of the protocol.
var (
	replyOK   = []byte("+OK\r\n")
	replyZero = []byte(":0\r\n")
	replyOne  = []byte(":1\r\n")
)

// coldToken is what a lock key seems to hold while its stream has nothing to be
// reclaimed: whoever looks first then leaves the stream alone.
const coldToken = "streamproxy"

// missing is the answer to GET of a key that does not exist.
func missing(proto int) []byte {
	if proto >= 3 {
		return []byte("_\r\n")
	}
	return []byte("$-1\r\n")
}

// The replies of MULTI and of the three commands queued behind it, then the head
// of EXEC's: the lock was free.
const formHead = "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n"

// asForm makes the reply to an XAUTOCLAIM the five replies to a MULTI form around
// it.
func asForm(claim []byte) []byte {
	b := make([]byte, 0, len(formHead)+len(claim)+len(replyOne))
	b = append(b, formHead...)
	b = append(b, claim...)
	return append(b, replyOne...)
}

// claimReply writes the reply to an XAUTOCLAIM from raw parts. deleted is nil for
// servers before 7.0, which do not list deleted entries.
func claimReply(cursor []byte, entries [][]byte, deleted []byte) []byte {
	n := 2
	if deleted != nil {
		n = 3
	}
	b := redcon.AppendArray(nil, n)
	b = append(b, cursor...)
	b = redcon.AppendArray(b, len(entries))
	for _, e := range entries {
		b = append(b, e...)
	}
	return append(b, deleted...)
}

// readEntries are the raw entries of one stream.
type readEntries struct {
	stream  string
	entries [][]byte
}

// readReply writes the reply to an XREADGROUP: an array of pairs, in RESP3 a map.
func readReply(proto int, streams []readEntries) []byte {
	var b []byte
	if proto >= 3 {
		b = append(b, '%')
		b = strconv.AppendInt(b, int64(len(streams)), 10)
		b = append(b, crlf...)
	} else {
		b = redcon.AppendArray(b, len(streams))
	}
	for _, s := range streams {
		if proto < 3 {
			b = redcon.AppendArray(b, 2)
		}
		b = redcon.AppendBulkString(b, s.stream)
		b = redcon.AppendArray(b, len(s.entries))
		for _, e := range s.entries {
			b = append(b, e...)
		}
	}
	return b
}

// scriptsLoaded is the answer to SCRIPT EXISTS of n scripts that are all loaded.
func scriptsLoaded(n int) []byte {
	b := redcon.AppendArray(nil, n)
	for range n {
		b = append(b, replyOne...)
	}
	return b
}

// emptyClaim reports whether a reply to XAUTOCLAIM is one that claimed nothing and
// has nowhere to go on: the shape to answer with while a stream is cold.
func emptyClaim(raw []byte) bool {
	v, _, err := resp.Parse(raw)
	if err != nil || v.Kind != '*' || len(v.Elems) < 2 || len(v.Elems) > 3 {
		return false
	}
	if string(v.Elems[0].Text) != "0-0" {
		return false
	}
	for _, e := range v.Elems[1:] {
		if e.Kind != '*' || len(e.Elems) != 0 {
			return false
		}
	}
	return true
}

package proxy

import (
	"encoding/binary"
	"errors"
)

// TLS has records that bring no data: new keys, empty ones, pieces of messages. Each is a few bytes
// for whoever sends it; new keys cost the proxy as much as a command. crypto/tls works through all
// that it has read in one go, and gives up only at 17 of them in a row. So they are counted against
// those that brought data, of which an ordinary client has a thousand for each of the others. The
// headers of records are not encrypted, and when TLS reads on it has done with all that are whole:
// what is in flight does not count.

const (
	// idleRecords is how many records without data a connection may be ahead of those with data:
	// many more than a handshake takes.
	idleRecords = 256
	// suspectRead is how much is read at a time, and then others have their turn, of who is ahead
	// by more than fewIdle: what that costs is below half a millisecond.
	suspectRead = 1 << 10
	fewIdle     = 32
)

// errIdleRecords ends a connection that brings next to nothing but records without data.
var errIdleRecords = errors.New("tls: too many records without data")

// recordCount counts the TLS records that pass by.
type recordCount struct {
	header [5]byte
	have   int // bytes of the header
	left   int // bytes of the record behind it
}

// add returns how many records end within b.
func (r *recordCount) add(b []byte) (ended int) {
	for len(b) > 0 {
		if r.left > 0 {
			n := min(r.left, len(b))
			r.left, b = r.left-n, b[n:]
		} else {
			n := copy(r.header[r.have:], b)
			r.have, b = r.have+n, b[n:]
			if r.have < len(r.header) {
				return ended
			}
			r.have, r.left = 0, int(binary.BigEndian.Uint16(r.header[3:]))
		}
		if r.left == 0 {
			ended++
		}
	}
	return ended
}

package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"

	"streamproxy/internal/resp"
)

// Bounds of one reply on the control connection. The longest that is asked for there,
// COMMAND's, has some 100 KB and 10,000 values, five deep.
const (
	maxControlReply  = 8 << 20 // bytes
	maxControlLine   = 64 << 10
	maxControlValues = 1 << 20
	maxControlDepth  = 64
)

// errControlReply is a reply that the control plane's library is not to see.
var errControlReply = errors.New("control plane: the server sent what is no answer")

// guardedConn stands between the server and the library that reads the control connection.
// That one panics, where nobody can recover it, on a reply too many and on impossible
// lengths, and makes room for what a header announces before it arrives. It is given whole
// replies only, each well-formed, within the bounds, and asked for; after anything else Read
// fails for good. One goroutine may read while another writes.
type guardedConn struct {
	net.Conn
	owed atomic.Int64 // commands that are not answered yet

	asked *resp.CommandScanner // what is written

	scan  resp.ReplyScanner // what is read
	part  []byte            // of a reply that is not complete
	ready []byte            // replies to be read
	err   error
	buf   [16 << 10]byte
}

func guarded(conn net.Conn) *guardedConn {
	return &guardedConn{Conn: conn, asked: resp.NewCommandScanner(resp.DefaultLimits())}
}

// Write counts commands before they leave: the answer may be there before Write returns.
func (g *guardedConn) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n, done, err := g.asked.Scan(rest)
		if err != nil {
			return 0, fmt.Errorf("control plane: command: %w", err)
		}
		if done {
			g.owed.Add(1)
		}
		rest = rest[n:]
	}
	return g.Conn.Write(b)
}

// Read waits for a whole reply.
func (g *guardedConn) Read(b []byte) (int, error) {
	for len(g.ready) == 0 {
		if g.err != nil {
			return 0, g.err
		}
		n, err := g.Conn.Read(g.buf[:])
		g.judge(g.buf[:n])
		if err != nil && g.err == nil && len(g.ready) == 0 {
			return 0, err
		}
	}
	n := copy(b, g.ready)
	if g.ready = g.ready[n:]; len(g.ready) == 0 {
		g.ready = nil // a large one is not kept
	}
	return n, nil
}

// judge takes what has arrived, up to the first that is refused.
func (g *guardedConn) judge(b []byte) {
	for len(b) > 0 && g.err == nil {
		n, done, err := g.scan.Scan(b)
		if err != nil {
			g.err = fmt.Errorf("%w: %w", errControlReply, err)
			return
		}
		g.part = append(g.part, b[:n]...)
		b = b[n:]
		switch {
		case g.scan.Announced() > maxControlReply:
			g.err = fmt.Errorf("%w: over %d bytes", errControlReply, maxControlReply)
		case !done:
		case g.owed.Add(-1) < 0:
			g.err = fmt.Errorf("%w: nothing was asked", errControlReply)
		default:
			g.err = vet(g.part)
			if g.err == nil {
				g.ready = append(g.ready, g.part...)
			}
			g.part = nil
		}
	}
}

// vet looks at a reply whose framing the scanner has found good for what the library would
// read in another way, or cannot hold: lines with an LF inside, pushes, attributes, types
// without a count, too many values, too deep.
func vet(reply []byte) error {
	left := [maxControlDepth]int{1} // values to come, by depth
	values := 0
	for depth := 0; depth >= 0; {
		if left[depth] == 0 {
			depth--
			continue
		}
		left[depth]--
		kind, n, rest, err := cutHeader(reply)
		if err != nil {
			return err
		}
		reply = rest
		switch kind {
		case '$', '!', '=':
			if n >= 0 {
				reply = reply[n+2:]
			}
		case '*', '~', '%':
			if values += max(n, 0); values > maxControlValues {
				return fmt.Errorf("%w: over %d values", errControlReply, maxControlValues)
			}
			if depth++; depth == maxControlDepth {
				return fmt.Errorf("%w: over %d deep", errControlReply, maxControlDepth)
			}
			left[depth] = max(n, 0)
		}
	}
	return nil
}

// cutHeader takes a value's first line. n is the payload's size or how many values follow.
func cutHeader(reply []byte) (kind byte, n int, rest []byte, err error) {
	end := bytes.IndexByte(reply[:min(len(reply), maxControlLine)], '\n')
	if end < 2 || reply[end-1] != '\r' {
		return 0, 0, nil, fmt.Errorf("%w: a line that does not end", errControlReply)
	}
	kind, line, rest := reply[0], reply[1:end-1], reply[end+1:]
	switch kind {
	case '+', '-', ':', ',', '#', '_', '(':
	case '$', '!', '=', '*', '~', '%':
		n, err = strconv.Atoi(string(line))
		if kind == '%' {
			n *= 2
		}
	default:
		err = fmt.Errorf("values of type %q are not asked for", kind)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errControlReply, err)
	}
	return kind, n, rest, err
}

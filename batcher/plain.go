package batcher

import "net"

// socket is the connection below nc's TLS, or nc itself. To end TLS in the proper
// way takes a write, and whoever ends a connection must not wait for one.
func socket(nc net.Conn) net.Conn {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return nc
}

// plainChunk is what a connection without a descriptor waits with. Such a one
// cannot be asked whether there is something to read, so a buffer is held all the
// time, and an idle connection should not cost a large one.
const plainChunk = 4 << 10

// readPlain reads a connection without a descriptor: TLS, or a pipe. It takes a
// large buffer only for as long as the small one would be filled.
func (c *Conn) readPlain() error {
	small := make([]byte, plainChunk)
	buf := small
	var large *[readChunk]byte
	defer func() {
		if large != nil {
			readBuffers.Put(large)
		}
	}()
	for {
		n, err := c.nc.Read(buf)
		if n > 0 {
			if err := c.consume(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err != nil:
			return err
		case n == plainChunk && large == nil:
			large = readBuffers.Get().(*[readChunk]byte)
			buf = large[:]
		case n < plainChunk && large != nil:
			readBuffers.Put(large)
			large, buf = nil, small
		}
	}
}

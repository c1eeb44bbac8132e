package netlab

import (
	"net"
	"sync"
	"time"
)

// lingerTime is how long a connection that was cut in order may still take what
// its peers send, so that no reset destroys what they have not read yet.
const lingerTime = 200 * time.Millisecond

// pair is one connection through the link: its two sockets and two directions.
type pair struct {
	client, server net.Conn
	pipes          [numDirs]*pipe
	done           chan struct{} // closed by end
	once           sync.Once
}

func newPair(l *Link, client, server net.Conn) *pair {
	p := &pair{client: client, server: server, done: make(chan struct{})}
	p.pipes[ToUpstream] = newPipe(l, p, ToUpstream, client, server)
	p.pipes[ToClient] = newPipe(l, p, ToClient, server, client)
	return p
}

// run carries both directions and closes both sockets behind them.
func (p *pair) run() {
	var wg sync.WaitGroup
	for _, d := range p.pipes {
		wg.Go(d.read)
		wg.Go(d.write)
	}
	wg.Wait()
	p.end(false)
}

// end closes both sockets, at once; only the first call decides how.
func (p *pair) end(abort bool) {
	p.once.Do(func() {
		close(p.done)
		for _, c := range []net.Conn{p.client, p.server} {
			if abort {
				reset(c)
			} else {
				_ = c.Close()
			}
		}
	})
}

// cut ends the pair in order: both peers read the end of the stream behind what
// was delivered, and both sockets are read a little longer.
func (p *pair) cut() {
	p.once.Do(func() {
		close(p.done)
		var wg sync.WaitGroup
		for _, c := range []net.Conn{p.client, p.server} {
			closeWrite(c)
			wg.Go(func() { discard(c) })
		}
		wg.Wait()
	})
}

// discard reads c to its end or for lingerTime, and closes it.
func discard(c net.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	buf := make([]byte, smallChunk)
	for {
		if _, err := c.Read(buf); err != nil {
			_ = c.Close()
			return
		}
	}
}

// closeWrite sends the end of the stream and leaves the other direction open.
func closeWrite(c net.Conn) {
	if hc, ok := c.(interface{ CloseWrite() error }); ok {
		_ = hc.CloseWrite()
	}
}

// reset closes c with RST instead of FIN, where the network knows that.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

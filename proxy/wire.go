package proxy

import (
	"net"
	"runtime"
	"syscall"
)

// Below TLS a client is read into buffers that are not the proxy's: they hold what is not whole, a
// record or a message of the handshake, and keep the room for as long as the client stays. A hello
// of 60 KB costs anybody nothing. What these buffers take cannot be seen, but what has been read
// since they last gave something away is no less than half of it, and counts with what the session
// holds.

// Metered returns a listener for TLS to stand upon, whose connections are counted so.
func Metered(l net.Listener) net.Listener { return meteredListener{l} }

type meteredListener struct{ net.Listener }

// Accept implements net.Listener.
func (l meteredListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if s, ok := nc.(stream); ok && err == nil {
		return &wire{stream: s}, nil
	}
	return nc, err
}

// stream is what a session needs of a connection: TCP's and Unix's are.
type stream interface {
	net.Conn
	syscall.Conn
	CloseRead() error
	CloseWrite() error
}

// wire is a connection below TLS. It is read by the session's reader.
type wire struct {
	stream
	grown func(n int) // told how many bytes the buffers above may take
	since int         // bytes read since TLS gave something away
	most  int         // that was told

	records recordCount
	idle    int // records without data ahead of those with, and what is in flight; see records.go
}

// wireStep is what buffers may take without counting, and in which steps they count.
const wireStep = 4 << 10

// Read implements net.Conn.
func (w *wire) Read(b []byte) (int, error) {
	switch {
	case w.idle > idleRecords:
		return 0, errIdleRecords
	case w.idle > fewIdle:
		runtime.Gosched()
		b = b[:min(len(b), suspectRead)]
	}
	n, err := w.stream.Read(b)
	w.idle += w.records.add(b[:n])
	if w.since += n; w.since >= w.most+wireStep && w.grown != nil {
		w.most = w.since
		w.grown(2 * w.most)
	}
	return n, err
}

// meter has the wire below TLS count, if there is one.
func (s *session) meter() {
	w, ok := socket(s.nc).(*wire)
	if !ok {
		return
	}
	s.wire = w
	w.grown = func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sealed = int64(n)
		s.charge()
	}
}

// opened notes that TLS has given away what was read, or a record of it.
func (s *session) opened() {
	if s.wire != nil {
		s.wire.since = 0
		s.wire.idle = max(s.wire.idle-2, 0) // for itself, and for one without data
	}
}

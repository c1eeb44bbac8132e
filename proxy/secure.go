package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// secureTime bounds a client's TLS handshake.
const secureTime = 10 * time.Second

// handshaker is a connection that needs a handshake before its first byte; *tls.Conn
// is the one there is.
type handshaker interface {
	HandshakeContext(context.Context) error
}

func secure(nc net.Conn) bool {
	_, ok := nc.(handshaker)
	return ok
}

// socket is the connection below nc's TLS, or nc itself. To end TLS in the proper
// way takes a write, and whoever ends a session must not wait for one.
func socket(nc net.Conn) net.Conn {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return nc
}

// secured performs the handshake of a client that connects with TLS, and reports
// whether there is a client. It is called by the session's reader, so that a slow
// handshake keeps nobody else from connecting.
func (s *session) secured() bool {
	h, ok := s.nc.(handshaker)
	if !ok {
		return true
	}
	s.p.partings.watch(s)
	ctx, cancel := s.patienceOf(secureTime)
	defer cancel()
	err := h.HandshakeContext(ctx)
	if err == nil {
		return true
	}
	if s.resigned() {
		err = errGone
	}
	s.readErr = err
	if errors.Is(err, io.EOF) || s.p.stopping() {
		return false // a probe that only connects
	}
	s.distrust("handshake", err)
	return false
}

// distrust counts and logs a client that does not speak TLS, or abuses it.
func (s *session) distrust(during string, err error) {
	if f := s.p.cfg.Events.ProtocolError; f != nil {
		f()
	}
	if n := s.p.insecure.take(time.Now()); n > 0 {
		s.p.log.Warn("client's TLS failed", "during", during, "client", s.remote(), "error", err, "such_errors", n)
	}
}

// sampleEvery is the time for which one line of log stands for all like it.
const sampleEvery = 10 * time.Second

// sampler thins out a kind of log line that strangers can cause.
type sampler struct {
	next  atomic.Int64 // unix nanoseconds from which one may be written
	count atomic.Int64
}

// take counts one occurrence. It returns how many the line that is now due stands
// for, 0 if none is due.
func (s *sampler) take(now time.Time) int64 {
	s.count.Add(1)
	next := s.next.Load()
	if now.UnixNano() < next || !s.next.CompareAndSwap(next, now.Add(sampleEvery).UnixNano()) {
		return 0
	}
	return s.count.Swap(0)
}

//go:build faults

package faults

import (
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"streamproxy/internal/redistest"
)

// hangTime exceeds every deadline of the proxy's and every fault's duration by far, because the
// machine may be busy.
const hangTime = 45 * time.Second

// session is one client's connection, made anew when it was lost.
type session struct {
	l    *lab
	kind string
	id   int
	rnd  *rand.Rand
	addr string
	// mayClose says that the proxy has a reason to close the connection: state at the server, or a
	// link in front that fails.
	mayClose bool

	c    *redistest.Client
	life int   // number of the connection
	born int64 // epoch in which it was made
	// stood is for how long the lab had got no time when the client last began to wait.
	stood int64
}

// unasked is what a command gets that somebody has unblocked with an error.
const unasked = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"

// newSession prepares a client's connection: over TCP, over the unix socket, or through the link in
// front that fails too.
func (l *lab) newSession(kind string, id int) *session {
	s := &session{l: l, kind: kind, id: id, rnd: rand.New(rand.NewPCG(l.seed, uint64(id)))}
	switch id % 5 {
	case 0, 1:
		s.addr = l.proxy.addr
	case 2, 3:
		s.addr = l.proxy.socket
	default:
		s.addr, s.mayClose = l.front.Addr(), true
	}
	return s
}

// connect makes sure that there is a connection; false means that the run is over.
func (s *session) connect() bool {
	s.l.halt()
	for began := time.Now(); s.c == nil; {
		if s.l.stopping() {
			return false
		}
		s.born, s.stood = s.l.epoch.Load(), s.l.stood.Load()
		c, err := redistest.Dial(s.addr)
		if err != nil {
			if time.Since(began) > s.l.hang && s.stood == s.l.stood.Load() {
				s.l.tally.violate("hang", "%s %d: cannot connect for %v: %v", s.kind, s.id, time.Since(began), err)
				began = time.Now()
			}
			s.l.pause(20 * time.Millisecond)
			continue
		}
		c.Timeout = s.l.hang
		s.c = c
		s.life++
	}
	return !s.l.stopping()
}

// drop closes the connection, in order or by a reset.
func (s *session) drop() {
	if s.c == nil {
		return
	}
	if tcp, ok := s.c.Conn.(*net.TCPConn); ok && s.rnd.IntN(2) == 0 {
		_ = tcp.SetLinger(0)
	}
	_ = s.c.Close()
	s.c = nil
}

// exchange writes raw at once and reads n replies. A connection that ends before is lost, and the
// replies that are missing are "". stateful says that the proxy may close the connection.
func (s *session) exchange(raw string, n int, stateful bool) []string {
	replies := make([]string, n)
	s.stood = s.l.stood.Load()
	if err := s.c.Send(raw); err != nil {
		s.ended("", err, stateful)
		return replies
	}
	for i := range replies {
		reply, err := s.c.ReadReply()
		if err != nil {
			s.ended(reply, err, stateful)
			return replies
		}
		if strings.HasPrefix(reply, "-ERR max number of clients reached") {
			s.ended("x", nil, stateful)
			return replies
		}
		if reply == unasked {
			s.l.tally.violate("P1", "%s %d: reply %d to %.80q is of a CLIENT UNBLOCK, which no client sends", s.kind, s.id, i, raw)
		}
		if strings.IndexByte(reply, garbage) < 0 { // damaged on its way: as good as none
			replies[i] = reply
		}
	}
	return replies
}

// ended takes the end of a connection down: a client that has waited too long has hung, and one
// that was closed although no part of a reply had left was closed without a reason.
func (s *session) ended(part string, err error, stateful bool) {
	switch {
	case err != nil && isTimeout(err) && s.stood == s.l.stood.Load():
		s.l.tally.violate("hang", "%s %d on %s: no reply for %v (got %.40q)", s.kind, s.id, s.c.Conn.LocalAddr(), s.l.hang, part)
	case part == "" && !isTimeout(err) && !stateful && !s.mayClose && !s.excused():
		s.l.tally.violate("closed", "%s %d, a client without state at the server: %v", s.kind, s.id, err)
	default:
		s.l.tally.closed.Add(1)
	}
	_ = s.c.Close()
	s.c = nil
}

// excused reports whether the proxy may have had to close this connection.
func (s *session) excused() bool { return s.l.mayRefuse.Load() || s.born != s.l.epoch.Load() }

// ask is an exchange of one command; the reply is "" if the connection was lost.
func (s *session) ask(stateful bool, args ...string) string {
	return s.exchange(redistest.Command(args...), 1, stateful)[0]
}

// bulk renders a bulk string.
func bulk(text string) string {
	_, frame, _ := strings.Cut(redistest.Command(text), "\r\n")
	return frame
}

// unbulk is the text of a bulk string, or false for anything else, a null included.
func unbulk(reply string) (string, bool) {
	if reply == "" || reply[0] != '$' || strings.HasPrefix(reply, "$-1") {
		return "", false
	}
	_, text, _ := strings.Cut(reply, "\r\n")
	return strings.TrimSuffix(text, "\r\n"), true
}

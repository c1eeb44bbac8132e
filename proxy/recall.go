package proxy

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
)

// Calling a blocked command back is CLIENT UNBLOCK, which makes the server answer as if
// its timeout had passed. Redis before 7.2 must not be asked so: while writes are paused
// (CLIENT PAUSE, FAILOVER), a command that would block is postponed and not blocked, and
// UNBLOCK then runs into a panic that ends the server (seen on 7.0.15, blocked.c). With
// ERROR it does not. What is unblocked so answers with an error, for which the client
// gets the null that it would have got; and a postponed command is run all the same
// later, which is a second reply: such a connection is not used again. WAIT is no write,
// so only a pause of all commands postpones it, and with it our UNBLOCK: it can always be
// asked plainly, and must be, because the number that it then answers is the server's to say.

// fragile reports whether a server of this name and version must be unblocked with
// care: Redis tells the two apart from 7.2 on. What is not known is.
func fragile(server, version string) bool {
	if server != "redis" {
		return server == ""
	}
	v, known := versionOf(version)
	return !known || v.before(7, 2)
}

// aim returns the connection that e is on, on which nothing else will be sent before the
// call that the caller is about to make has landed, which it tells landed; nil if e has its
// reply already, and the connection may be another's.
func (s *session) aim(e *exclusive) *batcher.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.settled {
		return nil
	}
	e.conn.Aim()
	e.calls++
	return e.conn
}

// recall calls a blocked command back, unless it has its reply. Errors are witness's, and the
// server's own.
func (s *session) recall(e *exclusive) error {
	c := s.aim(e)
	if c == nil {
		return nil
	}
	ctx, cancel := s.p.within(unblockPatience)
	defer cancel()
	by, err := s.p.witness(ctx, s.home.Load().key, c)
	if err != nil {
		c.Landed() // it was not sent
		s.landed(e, false)
		return err
	}
	careful := e.recalled != nil && !counts(e.cmd) && s.p.fragile.Load()
	if careful {
		e.recalled.Store(true)
	}
	hit, err := s.p.askUnblock(ctx, by, c, careful)
	if err == nil && !careful || upstream.Refused(err) || upstream.Busy(err) {
		c.Landed()
	}
	s.landed(e, hit)
	return err
}

// counts reports whether a command answers with numbers, at its timeout too.
func counts(cmd resp.Command) bool {
	return cmd.Len() > 0 && (fold(cmd.Arg(0), "wait") || fold(cmd.Arg(0), "waitaof"))
}

// askUnblock sends CLIENT UNBLOCK for c over a connection to the same server, and reports whether that
// has ended a command there, or may have.
func (p *Proxy) askUnblock(ctx context.Context, by, c *batcher.Conn, careful bool) (hit bool, err error) {
	unblock := []string{"CLIENT", "UNBLOCK", strconv.FormatInt(c.ID(), 10)}
	if careful {
		unblock = append(unblock, "ERROR")
	}
	reply, err := p.ask(ctx, by, unblock...)
	if err != nil {
		return !upstream.Refused(err) && !upstream.Busy(err), err
	}
	return string(reply) != ":0\r\n", nil
}

// forsake calls back what is blocked on a connection that is lost, if the server still knows
// that and may be asked: else it would hand the next entry to nobody. An error says that it
// could not be asked now.
func (s *session) forsake(ctx context.Context, c *batcher.Conn) error {
	by, err := s.p.witness(ctx, s.home.Load().key, c)
	if err == nil {
		_, err = s.p.askUnblock(ctx, by, c, s.p.fragile.Load())
	}
	if errors.Is(err, errStranger) || upstream.Refused(err) || upstream.Denied(err) {
		return nil
	}
	return err
}

// recallSink puts a null in the place of the error with which a command answers that
// was called back with care.
type recallSink struct {
	batcher.Sink
	e     *exclusive
	proto int
	head  []byte
	open  bool
}

// unblockedText begins the reply of a command that was unblocked with an error.
const unblockedText = "-UNBLOCKED "

// Reply implements batcher.Sink.
func (r *recallSink) Reply(b []byte, done, open int) {
	if r.open {
		r.open = done == 0 // a read may go on, and be answered again
		r.Sink.Reply(b, done, open)
		return
	}
	r.head = append(r.head, b...)
	if n := min(len(r.head), len(unblockedText)); done == 0 && string(r.head[:n]) == unblockedText[:n] {
		return // it may be the error
	}
	head := r.head
	r.head, r.open = nil, done == 0
	if r.e.recalled.Load() && bytes.HasPrefix(head, []byte(unblockedText)) {
		head = null(r.proto) // whatever the command, as every server has it
	}
	r.Sink.Reply(head, done, open)
}

// Trip implements batcher.Timed.
func (r *recallSink) Trip(d time.Duration) {
	if t, ok := r.Sink.(batcher.Timed); ok {
		t.Trip(d)
	}
}

package proxy

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
)

// A script on a connection of its own may have written or not, whatever it answers. Then
// the last write went there or where the one before it did, and WAIT asks both: what the
// least of the answers says is true of every write.

// maxEarlier is how many connections are asked beside the last one at most.
const maxEarlier = 8

// askEarlier asks the connections of s.earlier one after the other, and has the reply to x,
// which is to be sent over the last one, say no more than theirs. It returns false if it has
// answered itself.
func (s *session) askEarlier(x *exclusive) bool {
	if len(s.earlier) == 0 {
		return true
	}
	start := time.Now()
	first := s.firstWrote
	s.firstWrote = nil // once is enough: what it says is true of all that was written there
	asked := x.cmd
	var least []byte
	for _, c := range s.earlier {
		reply := s.askOne(c, x.cmd)
		if reply == nil && c == first && c.Dead() {
			continue // as noteWrite does: it wrote since, as far as is known
		}
		if reply == nil || reply[0] == '-' {
			if reply == nil {
				reply = waitLostReply
			}
			s.answer(reply)
			return false
		}
		least = lesser(least, reply)
		x.cmd = remaining(asked, time.Since(start))
	}
	if least != nil {
		x.rewrite = func(reply []byte) []byte { return lesser(least, reply) }
	}
	return true
}

// askOne sends WAIT over c and returns the reply, nil if there is none to be had or the client
// does not wait for it any more.
func (s *session) askOne(c *batcher.Conn, cmd resp.Command) []byte {
	w := newEarlierWait(s, c, cmd)
	home, sent := s.sendTo(c, w, cmd)
	if home != nil {
		defer s.p.leaveHub(home)
	}
	for sent {
		select {
		case <-w.done:
			if home != nil {
				c.SetPatient(false)
				home.giveBack(c)
			}
			if w.err != nil {
				return nil
			}
			return w.buf
		case <-time.After(waitLook):
		}
		if s.p.stopping() || s.deserted() {
			break
		}
	}
	switch {
	case home != nil:
		c.Close()
	case sent: // others may have replies to come on what was a lane
		s.p.wg.Go(func() { s.callBack(&w.e) })
	}
	return nil
}

// earlierWait is a WAIT of askOne's, as it may have to be called back.
type earlierWait struct {
	*collector
	s *session
	e exclusive
}

func newEarlierWait(s *session, c *batcher.Conn, cmd resp.Command) *earlierWait {
	w := &earlierWait{collector: newCollector(1, 0), s: s}
	w.e = exclusive{conn: c, cmd: own(cmd), patient: true, control: true, ended: w.done}
	return w
}

// settle notes that the reply is there, or will not come: the connection is another's from now on.
func (w *earlierWait) settle() {
	w.s.p.asked.answered(w.e.conn)
	w.s.mu.Lock()
	w.e.settled = true
	w.s.mu.Unlock()
}

// Reply implements batcher.Sink.
func (w *earlierWait) Reply(b []byte, done, size int) {
	w.settle()
	w.collector.Reply(b, done, size)
}

// Fail implements batcher.Sink.
func (w *earlierWait) Fail(n int, err error) {
	w.settle()
	w.collector.Fail(n, err)
}

// waitLook is how often is looked whether the client is still there, and where its connection is.
const waitLook = 50 * time.Millisecond

// deserted reports whether the client is gone, or on its way.
func (s *session) deserted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || s.gone || s.left.Load()
}

// sendTo is waitOn for one of several connections.
func (s *session) sendTo(c *batcher.Conn, w batcher.Sink, cmd resp.Command) (home *hub, sent bool) {
	home, sent = s.untilHad(c, &cmd, func() bool {
		if c == s.conn {
			s.dropLane()
		}
		return c != s.own && c.SubmitLast(w, cmd.Raw) == nil
	})
	if home != nil {
		c.SetPatient(true)
		sent = c.Submit(w, nil, cmd.Raw, 1) == nil
	}
	return home, sent
}

// remaining is WAIT with what is left of its time, which is never nothing: that would be for
// ever, as a time of 0 is.
func remaining(cmd resp.Command, gone time.Duration) resp.Command {
	all := waitTime(cmd)
	if all == 0 || gone < time.Millisecond {
		return cmd
	}
	return withArg(cmd, cmd.Len()-1, strconv.FormatInt(max((all-gone).Milliseconds(), 1), 10))
}

// atOnce is a WAIT whose time is over as a question that waits for nobody: a server may look only ten times
// a second whose time is over. The server must have asked its replicas since what it is about was written.
func atOnce(cmd resp.Command) resp.Command {
	if cmd.Len() != 3 || waitTime(cmd) == 0 { // WAITAOF may be refused for what it asks for
		return cmd
	}
	if _, err := strconv.ParseInt(string(cmd.Arg(1)), 10, 64); err != nil {
		return cmd
	}
	return withArg(cmd, 1, "0")
}

// waitTime is how long a WAIT waits at most; 0: for ever, or it is refused.
func waitTime(cmd resp.Command) time.Duration {
	ms, err := strconv.ParseInt(string(cmd.Arg(cmd.Len()-1)), 10, 64)
	if err != nil || ms < 0 || ms > int64(math.MaxInt64/time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func withArg(cmd resp.Command, i int, arg string) resp.Command {
	raw := replaceArg(cmd, i, arg)
	scan := resp.NewCommandScanner(resp.DefaultLimits())
	n, _, _ := scan.Scan(raw) // it is canonical
	return resp.Command{Raw: raw[:n], Args: append([]resp.Span(nil), scan.Args()...)}
}

// lesser is of two replies to WAIT, or WAITAOF, the one made of the smaller numbers. An error
// stays as it is; nil is no reply.
func lesser(a, b []byte) []byte {
	if a == nil || len(b) == 0 || b[0] == '-' {
		return b
	}
	one, two := bytes.SplitAfter(a, []byte(":")), bytes.SplitAfter(b, []byte(":"))
	if len(one) != len(two) {
		return b
	}
	out := append([]byte(nil), two[0]...)
	for i := 1; i < len(two); i++ {
		m, n := leadingNumber(one[i]), leadingNumber(two[i])
		out = strconv.AppendInt(out, min(m, n), 10)
		out = append(out, two[i][bytes.IndexByte(two[i], '\r'):]...)
	}
	return out
}

// leadingNumber reads what stands before the line end.
func leadingNumber(b []byte) int64 {
	digits, _, _ := bytes.Cut(b, []byte("\r"))
	n, _ := strconv.ParseInt(string(digits), 10, 64)
	return n
}

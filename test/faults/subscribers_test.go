//go:build faults

package faults

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"streamproxy/internal/redistest"
)

// publisher sends 1, 2, 3, … to a channel of its own.
func (l *lab) publisher(id int, channel string) {
	s := l.newSession("publishes", id)
	defer s.drop()
	for n := 1; s.connect(); n++ {
		reply := s.ask(false, "PUBLISH", channel, strconv.Itoa(n)+":"+channel+strings.Repeat(".", s.rnd.IntN(20000)))
		v := verdictOf(reply)
		l.tally.count(s.kind, v)
		if v == done && !strings.HasPrefix(reply, ":") {
			l.tally.violate("P1", "%s %d: PUBLISH was answered %.80q", s.kind, id, reply)
		}
		l.pause(time.Duration(1+s.rnd.IntN(20)) * time.Millisecond)
	}
}

// subscriber expects its channel's messages, each at most once and in order. With RESP3 it asks
// for echoes meanwhile, which no message may tear.
func (l *lab) subscriber(id int, channel string) {
	s := l.newSession("subscribers", id)
	defer s.drop()
	last := 0
	for s.connect() {
		if resp3 := id%2 == 0; resp3 {
			if reply := s.ask(true, "HELLO", "3"); reply == "" || reply[0] != '%' {
				s.drop()
				l.pause(10 * time.Millisecond)
				continue
			}
		}
		reply := s.ask(true, "SUBSCRIBE", channel)
		l.tally.count(s.kind, verdictOf(reply))
		if !strings.HasSuffix(reply, "$9\r\nsubscribe\r\n"+bulk(channel)+":1\r\n") {
			s.drop()
			continue
		}
		last = l.listen(s, channel, last)
	}
}

// listen reads messages until the connection is lost or left, and returns the last number.
func (l *lab) listen(s *session, channel string, last int) int {
	echo := ""
	for n := 0; s.c != nil && !l.stopping(); n++ {
		if s.rnd.IntN(500) == 0 {
			s.drop()
			return last
		}
		if s.id%2 == 0 && echo == "" && n%5 == 0 {
			echo = fmt.Sprintf("%d:%d:%d", s.id, s.life, n)
			if s.c.Send(redistest.Command("ECHO", echo)) != nil {
				s.drop()
				return last
			}
		}
		s.c.Timeout = 500 * time.Millisecond
		part, err := s.c.ReadReply()
		switch {
		case err != nil && part == "" && isTimeout(err): // nothing was said
			continue
		case err != nil:
			if !isTimeout(err) && !errors.Is(err, io.ErrUnexpectedEOF) {
				l.tally.closed.Add(1)
			}
			s.drop()
			return last
		case echo != "" && part == bulk(echo):
			l.tally.count(s.kind, done)
			echo = ""
		default:
			last = l.hear(s, channel, part, last)
		}
	}
	return last
}

// hear judges a message.
func (l *lab) hear(s *session, channel, message string, last int) int {
	if strings.IndexByte(message, garbage) >= 0 || verdictOf(message) != done {
		return last
	}
	_, body, ok := strings.Cut(message, "$7\r\nmessage\r\n"+bulk(channel))
	text, _ := unbulk(body)
	number, rest, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(number)
	switch {
	case !ok || err != nil || !strings.HasPrefix(rest, channel) || strings.Trim(rest[len(channel):], ".") != "":
		l.tally.violate("P1", "%s %d: heard %.120q", s.kind, s.id, message)
	case n <= last:
		l.tally.violate("P2", "%s %d: heard %d after %d", s.kind, s.id, n, last)
	}
	l.tally.count(s.kind, done)
	return max(n, last)
}

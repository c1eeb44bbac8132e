//go:build faults

package faults

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"streamproxy/internal/redistest"
)

// channel is the ledger of what one client publishes, 1, 2, 3, …, and another hears.
type channel struct {
	name string

	mu     sync.Mutex
	told   map[int]verdict // of what is not answered: it may come late, or not at all
	heard  map[int]bool
	latest int // heard, of those that were answered
}

func newChannel(name string) *channel {
	return &channel{name: name, told: make(map[int]verdict), heard: make(map[int]bool)}
}

// settle notes what became of a message, unless it was answered.
func (c *channel) settle(n int, v verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v != done {
		c.told[n] = v
	}
}

// hear notes that a message arrived, and returns what is wrong with that.
func (c *channel) hear(n int) (promise, wrong string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.told[n] // done also for one that is under way
	switch {
	case c.heard[n]:
		return "P3", "came twice"
	case v.certain():
		return "P3", "came, and its client was told " + v.String()
	case v == done && n < c.latest:
		return "P2", fmt.Sprint("came after ", c.latest)
	}
	c.heard[n] = true
	if v == done {
		c.latest = n
	}
	return "", ""
}

// publisher sends 1, 2, 3, … to a channel of its own.
func (l *lab) publisher(id int, ch *channel) {
	s := l.newSession("publishes", id)
	defer s.drop()
	for n := 1; s.connect(); n++ {
		reply := s.ask(false, "PUBLISH", ch.name, strconv.Itoa(n)+":"+ch.name+strings.Repeat(".", s.rnd.IntN(20000)))
		v := verdictOf(reply)
		ch.settle(n, v)
		l.tally.count(s.kind, v)
		if v == done && !strings.HasPrefix(reply, ":") {
			l.tally.violate("P1", "%s %d: PUBLISH was answered %.80q", s.kind, id, reply)
		}
		l.pause(time.Duration(1+s.rnd.IntN(20)) * time.Millisecond)
	}
}

// subscriber expects its channel's messages, each at most once and in order. With RESP3 it asks
// for echoes meanwhile, which no message may tear.
func (l *lab) subscriber(id int, ch *channel) {
	s := l.newSession("subscribers", id)
	defer s.drop()
	for s.connect() {
		if resp3 := id%2 == 0; resp3 {
			if reply := s.ask(true, "HELLO", "3"); reply == "" || reply[0] != '%' {
				s.drop()
				l.pause(10 * time.Millisecond)
				continue
			}
		}
		reply := s.ask(true, "SUBSCRIBE", ch.name)
		l.tally.count(s.kind, verdictOf(reply))
		if !strings.HasSuffix(reply, "$9\r\nsubscribe\r\n"+bulk(ch.name)+":1\r\n") {
			s.drop()
			continue
		}
		l.listen(s, ch)
	}
}

// listen reads messages until the connection is lost or left.
func (l *lab) listen(s *session, ch *channel) {
	echo := ""
	for n := 0; s.c != nil && !l.stopping(); n++ {
		if s.rnd.IntN(500) == 0 {
			s.drop()
			return
		}
		if s.id%2 == 0 && echo == "" && n%5 == 0 {
			echo = fmt.Sprintf("%d:%d:%d", s.id, s.life, n)
			if s.c.Send(redistest.Command("ECHO", echo)) != nil {
				s.drop()
				return
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
			return
		case echo != "" && part == bulk(echo):
			l.tally.count(s.kind, done)
			echo = ""
		default:
			l.hear(s, ch, part)
		}
	}
}

// hear judges a message.
func (l *lab) hear(s *session, ch *channel, message string) {
	if strings.IndexByte(message, garbage) >= 0 || verdictOf(message) != done {
		return
	}
	_, body, ok := strings.Cut(message, "$7\r\nmessage\r\n"+bulk(ch.name))
	text, _ := unbulk(body)
	number, rest, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || !strings.HasPrefix(rest, ch.name) || strings.Trim(rest[len(ch.name):], ".") != "" {
		l.tally.violate("P1", "%s %d: heard %.120q", s.kind, s.id, message)
		return
	}
	if promise, wrong := ch.hear(n); wrong != "" {
		l.tally.violate(promise, "%s %d: message %d %s", s.kind, s.id, n, wrong)
	}
	l.tally.count(s.kind, done)
}

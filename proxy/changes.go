package proxy

import (
	"bytes"
	"strconv"

	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
)

// What a client tells the server on a connection of its own, the session has to know as
// well: it answers CLIENT GETNAME, and asks as the client's user. Whether it is so only the
// server can say. Outside MULTI the reply to the command says it; what is queued counts from
// EXEC on, if its element there is no error.

// change is what a command makes of what the session keeps. Zero: nothing.
type change struct {
	name  *string // nil: it stays
	proto int     // 0: it stays
	db    *int    // nil: it stays
	who   *login  // nil: it stays
}

// queued is a change that EXEC will make.
type queued struct {
	change
	at int // which element of EXEC's reply tells of it
}

// changeOf reads a command. What is in a form that is not understood the server refuses.
func changeOf(cmd resp.Command, v Verb) (c change) {
	switch n := cmd.Len(); {
	case v == VerbSelect && n == 2:
		if db, err := strconv.Atoi(string(cmd.Arg(1))); err == nil {
			c.db = &db
		}
	case v == VerbClientSetName && n == 3:
		name := string(cmd.Arg(2))
		c.name = &name
	case v == VerbAuth && n == 2:
		c.who = &login{user: "default", password: string(cmd.Arg(1))}
	case v == VerbAuth && n == 3:
		c.who = &login{user: string(cmd.Arg(1)), password: string(cmd.Arg(2))}
	case v == VerbHello:
		h, ok := parseHello(cmd)
		if !ok {
			return c
		}
		c.proto = h.proto
		if h.named {
			c.name = &h.name
		}
		if h.logins > 0 {
			c.who = &login{user: h.user, password: h.password}
		}
	}
	return c
}

// tellOwn has the server carry out, or queue, a command that changes the session's own
// connection, which stays the session's. raw is what the server gets for it. It waits for the
// reply. If there is none to a command that sets up the connection, the session ends, see
// hangUp.
func (s *session) tellOwn(raw []byte, c change, setsUp bool) {
	s.waitIdle()
	if setsUp && s.failing() {
		s.hangUp()
		return
	}
	s.tx.odd = true
	var reply []byte
	s.submitAs(&segment{s: s, mute: setsUp, tee: &reply}, raw, stretch{n: 1})
	s.waitIdle()
	switch {
	case setsUp && s.failing():
		s.hangUp()
	case !agrees(reply):
	case s.tx.multi && string(reply) == "+QUEUED\r\n":
		s.tx.changes = append(s.tx.changes, queued{c, s.tx.queued - 1})
	default: // also within MULTI, if that has been refused
		s.adopt(c)
	}
}

// agrees reports whether a reply is there, and no error.
func agrees(reply []byte) bool { return len(reply) > 0 && reply[0] != '-' && reply[0] != '!' }

// adopt makes a change that the server has made.
func (s *session) adopt(c change) {
	key := s.key
	if c.proto != 0 {
		key.Proto = c.proto
	}
	if c.db != nil {
		key.DB = *c.db
		s.db.Store(int64(key.DB))
	}
	if c.who != nil && !s.enterAs(*c.who, &key.User) {
		s.ending = true // as whom it would be served here nobody could say
		return
	}
	s.rekey(key)
	if c.name != nil && !s.setName(*c.name) {
		s.ending = true // the server has taken the name
	}
}

// rekey makes a session that has a connection of its own one of another key's. It needs nothing
// of that key yet.
func (s *session) rekey(key upstream.Key) {
	if key == s.key {
		return
	}
	s.settleAt(s.p.hubOf(key))
}

// enterAs finds the key's user for credentials that the server has just accepted, and counts the
// session as one of that user's and no more of the one's before. It returns false if there is no
// room to keep the credentials.
func (s *session) enterAs(l login, user *upstream.User) bool {
	entered := upstream.User{}
	itself := l.user == s.p.ownUser() && !s.p.anonymous()
	if !itself && s.knows(l.user, l.password) != right {
		entered = s.p.identities.user(l.user, l.password)
		if !s.enter(entered, l.password) {
			return false
		}
	}
	s.p.identities.exit(*user)
	*user = entered
	return true
}

// executed makes the changes that EXEC has made.
func (s *session) executed(changes []queued, reply *elements) {
	for _, c := range changes {
		if c.at < len(reply.kinds) && agrees(reply.kinds[c.at:]) {
			s.adopt(c.change)
		}
	}
}

// elements reads the reply to EXEC as it comes, and keeps no more of it than the first byte
// of each element: the reply may be of any size.
type elements struct {
	kinds []byte
	head  []byte // its first line, as far as it has come
	begun bool   // the first line is complete
	over  bool   // it is no array
	scan  resp.ReplyScanner
	open  bool // an element has begun
}

// read takes the next bytes of the reply.
func (e *elements) read(b []byte) {
	if !e.begun {
		b = e.begin(b)
	}
	for len(b) > 0 && !e.over {
		if !e.open {
			e.kinds = append(e.kinds, b[0])
		}
		n, done, err := e.scan.Scan(b)
		e.open, e.over = !done, err != nil
		b = b[n:]
	}
}

// begin takes the first line, and returns what follows it.
func (e *elements) begin(b []byte) []byte {
	end := bytes.IndexByte(b, '\n') + 1
	if end == 0 {
		e.head = append(e.head, b...)
		return nil
	}
	e.head = append(e.head, b[:end]...)
	e.begun, e.over = true, e.head[0] != '*'
	return b[end:]
}

package proxy

import (
	"github.com/tidwall/redcon"

	"streamproxy/internal/resp"
)

// A client can say who it is on a connection of its own as well, and there the server has to
// hear it: the connection becomes another user's. But the server would judge in another way
// than the proxy. It knows nothing of --requirepass-file, and lets anybody in as a user who has
// no password; and it tells as fast as it is asked what is wrong. So the proxy judges first,
// and puts in the place of what the client has said what the server is to judge. The server
// speaks in every case, so that replies stay in their places, transactions included.

// login is who a client says it is.
type login struct {
	user, password string
	nameless       bool // by an AUTH with nothing but a password
}

// saysWho lists the commands that hold credentials.
func saysWho(v Verb) bool { return v == VerbAuth || v == VerbHello }

// vet judges the credentials in an AUTH or HELLO that the server is to carry out, and returns
// what the server gets. Wrong ones keep the session waiting. If they cannot be judged, the
// session ends, and ok is false.
func (s *session) vet(cmd resp.Command, v Verb) (raw []byte, ok bool) {
	args := make([]string, cmd.Len())
	for i := range args {
		args[i] = string(cmd.Arg(i))
	}
	at, question := 1, cmd.Raw
	switch {
	case v == VerbHello:
		h, _ := parseHello(cmd)
		if h.logins > 1 {
			return s.wrongLogin(), true // which one counts depends on the server
		}
		at, question = h.at, authRequest(h.user, h.password)
	case len(args) == 2:
		args = []string{args[0], "default", args[1]}
	case len(args) != 3:
		at = 0
	}
	if at == 0 {
		return cmd.Raw, true // nobody says who it is
	}
	said := login{user: args[at], password: args[at+1]}
	heard, ok := s.judgeLogin(said, question)
	if heard == said {
		return cmd.Raw, ok
	}
	args[at], args[at+1] = heard.user, heard.password
	return resp.AppendCommand(nil, args...), ok
}

// judgeLogin judges credentials, and returns those that the server is to judge: the proxy's
// own for its user's, one that it cannot but refuse for those that are wrong here.
func (s *session) judgeLogin(l login, question []byte) (heard login, ok bool) {
	switch s.knows(l.user, l.password) {
	case right:
		if s.p.cfg.RequirePass == nil {
			return l, true // they are the server's too
		}
		own, err := s.p.ownLogin()
		if err == nil {
			return own, true
		}
		s.p.noteDown(err)
		s.hangUp()
		return login{}, false
	case wrong:
		s.slowDown()
		return s.p.identities.nobody, true
	}
	refusal, ok := s.tryLogin(s.p.identities.user(l.user, l.password), question)
	if refusal != nil {
		s.slowDown()
	}
	return l, ok
}

// ownLogin is what the proxy itself greets the server with. A user without a password is let
// in with any.
func (p *Proxy) ownLogin() (own login, err error) {
	own.user = p.ownUser()
	if p.cfg.Upstream.Password != nil {
		own.password, err = p.cfg.Upstream.Password()
	}
	return own, err
}

// ownLogin runs AUTH or HELLO on the session's own connection, which stays the session's.
func (s *session) ownLogin(cmd resp.Command, v Verb) {
	s.waitIdle() // Redis from 7.2 on tells nothing of wrong ones while earlier replies are pending
	if s.failing() {
		s.hangUp()
		return
	}
	if raw, ok := s.vet(cmd, v); ok {
		s.tellOwn(raw, changeOf(cmd, v), true)
	}
}

// loginHere runs AUTH or HELLO on a private connection of the session's present user and database,
// which is its own from then on. The server keeps a client in its database when it becomes a user who
// may not SELECT; a connection that is dialled for that user does not get there. A client that has not
// said yet who it is has no such connection: it would be the proxy's if the server changed its mind.
func (s *session) loginHere(cmd resp.Command, v Verb) {
	if raw, ok := s.vet(cmd, v); ok {
		s.pin(raw)
	}
}

// noLogin has too many arguments. Every server refuses it in its place; a wrong password Redis from 7.2
// on does not answer at all while earlier replies are pending.
var noLogin = resp.AppendCommand(nil, "AUTH", "too", "many", "arguments")

// wrongLogin is what the server gets in the place of credentials that are not judged, and count
// as wrong: of an AUTH or HELLO that is too long to be held, or holds several.
func (s *session) wrongLogin() []byte {
	s.slowDown()
	return noLogin
}

// refuseLongLogin answers one that is too long, of a session that is not pinned.
func (s *session) refuseLongLogin() {
	if s.own == nil {
		s.refuseCredentials(redcon.AppendError(nil, textWrongPass))
		return
	}
	s.waitIdle()
	s.tellOwn(s.wrongLogin(), change{}, true)
}

package proxy

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
)

// noAuthReply is what a client gets that has not proved who it is.
var noAuthReply = redcon.AppendError(nil, textNoAuth)

// stateCommand runs a command that reads or changes what the session keeps.
// Whatever is not a form that is fully understood goes to the server, over a
// connection that is not used again.
func (s *session) stateCommand(cmd resp.Command, route Route) {
	switch route.Verb {
	case VerbSelect:
		s.selectDB(cmd)
	case VerbHello:
		s.hello(cmd)
	case VerbAuth:
		s.auth(cmd)
	case VerbReset:
		s.reset(cmd)
	case VerbQuit:
		s.waitIdle()
		s.answer(replyOK)
		s.ending = true
	case VerbClientInfo:
		s.ask(cmd.Raw, s.clientLine)
	case VerbClientList:
		s.clientList(cmd)
	default:
		s.clientCommand(cmd, route)
	}
}

// selectDB moves the session to the lane of another database. Whether there is such
// a database the server says, when a connection of that key greets it.
func (s *session) selectDB(cmd resp.Command) {
	db, err := strconv.Atoi(string(cmd.Arg(1)))
	if cmd.Len() != 2 || err != nil || db < 0 || strconv.Itoa(db) != string(cmd.Arg(1)) {
		s.setUpOnce(cmd.Raw)
		return
	}
	key := s.key
	key.DB = db
	if s.moveTo(key, VerbSelect) {
		s.db.Store(int64(db))
		s.answer(replyOK)
	}
}

// moveTo puts the session on the lane of another key, for a command of that verb. If the server refuses
// that key, it answers so and returns false, and a session whose own user is not let in any more ends; if
// it cannot be reached, the session ends.
func (s *session) moveTo(key upstream.Key, v Verb) bool {
	moved, refusal := s.tryMove(key, v)
	if refusal != nil {
		s.answer(refusal.Reply)
		s.ending = s.ending || key.User == s.key.User && denies(key, refusal)
	}
	return moved
}

// tryMove is moveTo without a word of a refusal, which it returns if it is an answer.
func (s *session) tryMove(key upstream.Key, v Verb) (moved bool, refusal *upstream.HandshakeError) {
	if key == s.key {
		return true, nil
	}
	s.waitIdle()
	if s.failing() {
		s.hangUp()
		return false, nil
	}
	h := s.p.hubOf(key)
	if !h.connected() {
		s.paceMove(key)
	}
	ctx, cancel := s.patienceFor(h)
	defer cancel()
	err := h.reach(ctx)
	if err == nil && v == VerbSelect {
		err = h.maySelect(ctx)
	}
	if err != nil {
		s.p.leaveHub(h)
		if errors.As(err, &refusal) && !upstream.Unavailable(err) && answersFor(refusal, v) {
			return false, refusal
		}
		refusal = nil
		s.noteDown(err)
		if !s.turnAway() {
			s.hangUp()
		}
		return false, nil
	}
	s.dropLane()
	s.settleAt(h)
	return true, nil
}

// settleAt makes the session, which has left everything of its key's, one of a hub that counts it.
func (s *session) settleAt(h *hub) {
	s.p.leaveHub(s.hub)
	h.comings.note()
	s.key, s.hub = h.key, h
	s.home.Store(h)
}

// hello understands HELLO [2|3 [AUTH user password] [SETNAME name]].
func (s *session) hello(cmd resp.Command) {
	h, ok := parseHello(cmd)
	if !ok {
		if !s.authed {
			s.answer(redcon.AppendError(nil, textNoAuthHi))
			return
		}
		if raw, ok := s.vet(cmd, VerbHello); ok {
			s.setUpOnce(raw)
		}
		return
	}
	if h.logins > 0 && !s.authenticate(cmd, VerbHello, login{user: h.user, password: h.password}) {
		return
	}
	if !s.authed {
		s.answer(redcon.AppendError(nil, textNoAuthHi))
		return
	}
	if h.named && !s.setName(h.name) {
		s.answer(redcon.AppendError(nil, textNoRoom))
		return
	}
	if h.proto != 0 {
		key := s.key
		key.Proto = h.proto
		if !s.moveTo(key, VerbHello) {
			return
		}
	}
	s.greet(h.proto)
}

// greet asks the server for the reply to HELLO and puts the session's own id in it.
// On a lane of that protocol version the question changes nothing. It waits for the
// reply: nothing may follow if there is none.
func (s *session) greet(proto int) {
	request := resp.AppendCommand(nil, "HELLO")
	if proto != 0 {
		request = resp.AppendCommand(nil, "HELLO", strconv.Itoa(proto))
	}
	s.waitIdle()
	rewrite := func(reply []byte) []byte { return replaceID(reply, s.id) }
	s.submitAs(&segment{s: s, rewrite: rewrite, mute: true}, request, stretch{n: 1})
	s.waitIdle()
	if s.failing() {
		s.hangUp()
	}
}

// helloArgs is a HELLO that is understood.
type helloArgs struct {
	proto                int // 0: not given
	named                bool
	user, password, name string
	logins, at           int // how many AUTH there are, and where the last one's user stands
}

// parseHello reads a HELLO. Of one that it does not understand it returns what stands before
// what it does not know.
func parseHello(cmd resp.Command) (h helloArgs, ok bool) {
	if cmd.Len() == 1 {
		return h, true
	}
	switch string(cmd.Arg(1)) {
	case "2":
		h.proto = 2
	case "3":
		h.proto = 3
	default:
		return h, false
	}
	for i := 2; i < cmd.Len(); {
		left := cmd.Len() - i - 1
		switch opt := cmd.Arg(i); {
		case fold(opt, "auth") && left >= 2:
			h.user, h.password = string(cmd.Arg(i+1)), string(cmd.Arg(i+2))
			h.logins, h.at = h.logins+1, i+1
			i += 3
		case fold(opt, "setname") && left >= 1:
			h.named, h.name = true, string(cmd.Arg(i+1))
			i += 2
		default:
			return h, false
		}
	}
	return h, !h.named || validName(h.name)
}

// replaceID puts id in place of the server's in HELLO's reply. The field is found
// by its name, which no value before it can contain.
func replaceID(reply []byte, id int64) []byte {
	const field = "$2\r\nid\r\n:"
	at := strings.Index(string(reply), field)
	if at < 0 {
		return reply
	}
	at += len(field)
	end := strings.IndexByte(string(reply[at:]), '\r')
	if end < 0 {
		return reply
	}
	out := append([]byte(nil), reply[:at]...)
	out = strconv.AppendInt(out, id, 10)
	return append(out, reply[at+end:]...)
}

// verdict is what the proxy itself can say of a password.
type verdict uint8

const (
	unproven verdict = iota // the server has to say
	right
	wrong
)

// knows compares credentials with those the proxy was given: the password of
// --requirepass-file, and the upstream URL's own.
func (s *session) knows(user, password string) verdict {
	t := &s.p.cfg.Upstream
	if user != "default" && user != s.p.ownUser() {
		return unproven
	}
	if ask := s.p.cfg.RequirePass; ask != nil {
		want, err := ask()
		if err != nil {
			if n := s.p.unreadable.take(time.Now()); n > 0 {
				s.p.log.Error("the password of clients cannot be read; refusing", "error", err, "such_errors", n)
			}
			return wrong
		}
		if sameSecret(want, password) {
			return right
		}
		return wrong
	}
	if t.Password == nil {
		return unproven
	}
	want, err := t.Password()
	if err == nil && user == s.p.ownUser() && sameSecret(want, password) {
		return right
	}
	return unproven
}

// auth understands AUTH [user] password.
func (s *session) auth(cmd resp.Command) {
	var l login
	switch cmd.Len() {
	case 2:
		l = login{user: "default", password: string(cmd.Arg(1)), nameless: true}
	case 3:
		l = login{user: string(cmd.Arg(1)), password: string(cmd.Arg(2))}
	default:
		s.setUpOnce(cmd.Raw)
		return
	}
	if s.authenticate(cmd, VerbAuth, l) {
		s.answer(replyOK)
	}
}

// authenticate makes the session that of the user whose credentials stand in cmd. If
// they are wrong it answers so and returns false; and so it does if cmd is left to the server.
func (s *session) authenticate(cmd resp.Command, v Verb, l login) bool {
	who := upstream.User{}
	switch s.knows(l.user, l.password) {
	case right:
	case wrong:
		s.refuseCredentials(redcon.AppendError(nil, textWrongPass))
		return false
	default:
		question := cmd.Raw
		if v == VerbHello {
			question = authRequest(l.user, l.password)
		}
		var ok bool
		if who, ok = s.identify(l, question); !ok {
			return false
		}
	}
	became, refusal := s.become(who)
	switch {
	case refusal == nil:
	case s.authed && refusal.Step == "SELECT":
		s.loginHere(cmd, v)
	default:
		s.answer(refusal.Reply)
	}
	return became
}

func (s *session) setAuthed() {
	if !s.authed {
		s.authed = true
		s.scan.SetLimits(s.limits())
	}
}

// reset puts the session back to its beginning.
func (s *session) reset(cmd resp.Command) {
	if cmd.Len() != 1 {
		s.setUpOnce(cmd.Raw)
		return
	}
	s.waitIdle()
	if s.restart() {
		s.answer(redcon.AppendString(nil, "RESET"))
	}
}

// restart forgets what the client has told: it is on the default lane, nameless, and
// has to prove itself again if that was asked.
func (s *session) restart() bool {
	before := s.key.User
	if !s.moveTo(s.p.defaultKey(), VerbReset) {
		return false
	}
	s.p.identities.exit(before)
	s.db.Store(int64(s.key.DB))
	s.setName("")
	if !s.p.admits() {
		s.authed = false
		s.scan.SetLimits(s.limits())
	}
	return true
}

package proxy

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/redcon"
	"golang.org/x/time/rate"

	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
)

// Who a client is, the server decides: credentials that the proxy was not given are
// tried on connections kept for that, see prover.go. A user so proven has lanes of
// its own, keyed by its name and the password that has proven it, which is kept in memory, for
// their dials, as long as a session lives that came with it. So what a client is served by was
// greeted with what this client has proven. Rejected: one password for each name, the last that
// was proven. Those who know only the one before would be let in by it.

// provenFor is how long a proof spares the provers the same question.
// It is short: a password that was changed is good for so long with a new client,
// if an old one still has a connection.
const provenFor = 3 * time.Second

// identities are the users that sessions have proven.
type identities struct {
	failures *rate.Limiter // see failures.go
	kept     *keepsakes    // counts the credentials of users
	salt     [32]byte
	nobody   login // whom the server knows no user of, see login.go

	mu    sync.Mutex
	users map[upstream.User]*identity

	provers provers
}

type identity struct {
	password string
	proven   time.Time // zero: it has been refused since
	nameless time.Time // so by an AUTH without a name
	sessions int
}

func newIdentities() *identities {
	ids := &identities{
		failures: rate.NewLimiter(failuresPerSecond, failureBurst),
		users:    map[upstream.User]*identity{},
		nobody:   login{user: "streamproxy:" + rand.Text()},
		kept:     new(keepsakes),
	}
	ids.kept.init(shortLogin, 0)
	ids.provers.turns.free = maxProvers
	_, _ = rand.Read(ids.salt[:]) // never fails, says its documentation
	return ids
}

// user is who these credentials are, if they are right.
func (ids *identities) user(name, password string) upstream.User {
	h := sha256.New()
	h.Write(ids.salt[:])
	h.Write([]byte(password))
	return upstream.User{Name: name, Proof: string(h.Sum(nil))}
}

// enterProven counts one more session of a user if it has been proven lately, and reports
// whether it has. An AUTH without a name is proven by such alone: the server refuses it to a user who
// needs no password, and lets the same user in by name with any.
func (ids *identities) enterProven(user upstream.User, nameless bool) bool {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	id := ids.users[user]
	if id == nil {
		return false
	}
	at := id.proven
	if nameless {
		at = id.nameless
	}
	if time.Since(at) >= provenFor {
		return false
	}
	id.sessions++
	return true
}

// provenNameless adds to the proof that enter has just recorded that no name was said.
func (ids *identities) provenNameless(user upstream.User) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if id := ids.users[user]; id != nil {
		id.nameless = id.proven
	}
}

// known reports whether a user's credentials were right the last time they were asked, and a
// session that came with them lives. It is no proof.
func (ids *identities) known(user upstream.User) bool {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	id := ids.users[user]
	return id != nil && !id.proven.IsZero()
}

// enter records a proof, and counts one more session of that user. It returns false if there is no
// room to keep the credentials.
func (ids *identities) enter(user upstream.User, password string) bool {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	id := ids.users[user]
	if id == nil {
		if len(user.Name) > maxUserName || !ids.kept.take(len(user.Name)+len(password)) {
			return false
		}
		id = &identity{password: password}
		ids.users[user] = id
	}
	id.proven = time.Now()
	id.sessions++
	return true
}

// enter is identities.enter for the session, and tells of a refusal.
func (s *session) enter(user upstream.User, password string) bool {
	entered := s.p.identities.enter(user, password)
	if !entered {
		s.p.met(LimitMemory, "credentials refused", "client", s.remote(), "bytes", len(user.Name)+len(password))
	}
	return entered
}

// sameSecret compares two secrets in a time that tells neither where they differ nor
// how long they are. Every comparison of passwords is made here, or by their salted digests.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// exit takes back what the two have counted; with the last session the password goes.
func (ids *identities) exit(user upstream.User) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if id := ids.users[user]; id != nil {
		if id.sessions--; id.sessions <= 0 {
			delete(ids.users, user)
			ids.kept.give(len(user.Name) + len(id.password))
		}
	}
}

// doubt forgets that a user was proven, because the server has refused its password: the next
// AUTH asks again.
func (ids *identities) doubt(user upstream.User) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if id := ids.users[user]; id != nil {
		id.proven, id.nameless = time.Time{}, time.Time{}
	}
}

// has reports whether a session of a proven user lives.
func (ids *identities) has(user upstream.User) bool {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	return ids.users[user] != nil
}

// named is the user of a name that was proven last, among those that sessions have; the zero one
// if there is none.
func (ids *identities) named(name string) (last upstream.User) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	for user, id := range ids.users {
		if user.Name == name && (last == upstream.User{} || id.proven.After(ids.users[last].proven)) {
			last = user
		}
	}
	return last
}

// errNobody is a dial for a user of whom no session is left.
var errNobody = errors.New("no session that has proven this user's password is left")

// passwordOf serves the dials of a proven user's connections.
func (ids *identities) passwordOf(user upstream.User) (string, error) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if id := ids.users[user]; id != nil {
		return id.password, nil
	}
	return "", errNobody
}

// identify proves credentials and returns the key's user for them, which counts one
// session more from now on. If they are wrong, it answers so and returns false; if they
// cannot be proven now, the session ends. question is the AUTH with which the server is
// asked.
func (s *session) identify(l login, question []byte) (user upstream.User, ok bool) {
	s.waitIdle()
	if s.failing() {
		s.hangUp()
		return user, false
	}
	ids := s.p.identities
	user = ids.user(l.user, l.password)
	itself := l.user == s.p.ownUser() && !s.p.anonymous() // whose connections prove nothing
	if itself || !ids.enterProven(user, l.nameless) {
		refusal, ok := s.tryLogin(user, question)
		if !ok {
			return user, false
		}
		if refusal != nil {
			s.refuseCredentials(refusal)
			return user, false
		}
		if itself {
			return upstream.User{}, true
		}
		first := !ids.has(user)
		if !s.enter(user, l.password) {
			s.answer(redcon.AppendError(nil, textNoRoom))
			return user, false
		}
		if l.nameless {
			ids.provenNameless(user)
		}
		if first && l.user == s.p.ownUser() {
			s.p.checkNow() // it may have got a password lately, and can be asked what it is like
		}
	}
	return user, true
}

// tryLogin asks the server about the credentials of a user, and returns its refusal if they are
// wrong. If it cannot be asked, the session ends.
func (s *session) tryLogin(user upstream.User, question []byte) (refusal []byte, ok bool) {
	ctx, cancel := s.p.within(s.p.cfg.UpstreamWait + s.p.cfg.DialTimeout)
	defer cancel()
	refusal, err := s.prove(ctx, s.rankOf(user), question)
	if refusal != nil {
		s.p.identities.doubt(user)
		s.p.forgetComings(user)
	}
	if err == nil {
		return refusal, true
	}
	if !errors.Is(err, errGone) {
		s.p.noteDown(err)
	}
	if !s.turnAway() {
		s.hangUp()
	}
	return nil, false
}

// rankOf is the rank of a session's question.
func (s *session) rankOf(user upstream.User) rank {
	switch {
	case s.p.identities.known(user), s.failures == nil && s.p.comesBack(user):
		return rankKnown
	case s.failures == nil:
		return rankFirst
	}
	return rankRepeated
}

// refusalOf is the server's own words if err says that it does not let the session's user in any
// more, by the password that the session has proven; nil if it does not.
func (s *session) refusalOf(err error) []byte {
	var he *upstream.HandshakeError
	if s.hub.denied(err) && errors.As(err, &he) {
		return he.Reply
	}
	return nil
}

// unserved takes note that no connection was to be had, for which the caller fails what the client
// has asked. One whose user is not let in any more is told so instead, and ends: it has to prove
// itself anew. One that may not SELECT any more where it is hears that.
func (s *session) unserved(err error) {
	refusal := s.refusalOf(err)
	switch {
	case refusal != nil:
		s.answer(refusal)
		s.ending = true
	case s.hub.barred(err):
		s.reason = replyBarred
	case !s.turnAway():
		s.noteDown(err)
	}
}

// expel ends the sessions of a hub whose user the server lets in no more, after it has
// ended their shared connection: it ends the connections of a user that is deleted,
// and the proxy's clients are to see no less.
func (p *Proxy) expel(h *hub) {
	n := 0
	for _, s := range p.sessions.all() {
		if s.home.Load() == h {
			s.upstreamGone()
			n++
		}
	}
	if n > 0 {
		p.log.Warn("the server does not let a user in any more; closing its clients", "user", h.key.User.Name, "clients", n)
	}
}

// ownUser is the name of the user with which the proxy itself greets the server.
func (p *Proxy) ownUser() string {
	if p.cfg.Upstream.User == "" {
		return "default"
	}
	return p.cfg.Upstream.User
}

// authRequest is the AUTH for credentials that came with HELLO.
func authRequest(user, password string) []byte {
	return resp.AppendCommand(nil, "AUTH", user, password)
}

// become makes the session that of a user whom identify has counted. A refusal of the server's, which
// it returns, is not answered.
func (s *session) become(user upstream.User) (became bool, refusal *upstream.HandshakeError) {
	key := s.key
	key.User = user
	before := s.key.User
	if became, refusal = s.tryMove(key, VerbAuth); !became {
		s.p.identities.exit(user)
		return false, refusal
	}
	s.p.identities.exit(before)
	s.setAuthed()
	return true, nil
}

// clientLine rewrites the reply to CLIENT INFO, the server's line on the connection
// that happened to carry it: id and name are the session's own.
func (s *session) clientLine(reply []byte) []byte {
	v, n, err := resp.Parse(reply)
	if err != nil || n != len(reply) || (v.Kind != '$' && v.Kind != '=') || v.Null {
		return reply
	}
	fields := strings.Split(string(v.Text), " ")
	for i, f := range fields {
		prefix := ""
		if v.Kind == '=' && i == 0 { // "txt:id=..."
			prefix, f = f[:min(4, len(f))], f[min(4, len(f)):]
		}
		switch {
		case strings.HasPrefix(f, "id="):
			f = fmt.Sprintf("id=%d", s.id)
		case strings.HasPrefix(f, "name="):
			f = "name="
			if name := s.name.Load(); name != nil {
				f += *name
			}
		}
		fields[i] = prefix + f
	}
	text := strings.Join(fields, " ")
	return fmt.Appendf(nil, "%c%d\r\n%s\r\n", v.Kind, len(text), text)
}

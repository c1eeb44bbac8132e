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

	"golang.org/x/time/rate"

	"streamproxy/internal/resp"
)

// Who a client is, the server decides: credentials that the proxy was not given are
// tried on connections kept for that, see prover.go. A user so proven has lanes of
// its own, keyed by its name; its password is kept in memory, for their dials, as
// long as a session of that user lives.

// provenFor is how long a proof spares the provers the same question.
// It is short: a password that was changed is good for so long with a new client,
// if an old one still has a connection.
const provenFor = 3 * time.Second

// identities are the users that sessions have proven.
type identities struct {
	failures *rate.Limiter // see failures.go
	salt     [32]byte

	mu    sync.Mutex
	users map[string]*identity

	provers provers
}

type identity struct {
	password string
	hash     [sha256.Size]byte
	proven   time.Time
	sessions int
}

func newIdentities() *identities {
	ids := &identities{
		failures: rate.NewLimiter(failuresPerSecond, failureBurst),
		users:    map[string]*identity{},
	}
	ids.provers.turns.free = maxProvers
	_, _ = rand.Read(ids.salt[:]) // never fails, says its documentation
	return ids
}

func (ids *identities) hash(password string) [sha256.Size]byte {
	return sha256.Sum256(append(ids.salt[:], password...))
}

// enterProven counts one more session of a user if these credentials have been proven
// lately, and reports whether they have.
func (ids *identities) enterProven(user, password string) bool {
	h := ids.hash(password)
	ids.mu.Lock()
	defer ids.mu.Unlock()
	id := ids.users[user]
	if id == nil || time.Since(id.proven) >= provenFor || !sameSecret(string(h[:]), string(id.hash[:])) {
		return false
	}
	id.sessions++
	return true
}

// known reports whether these credentials were right the last time they were asked, and a
// session of that user lives. It is no proof.
func (ids *identities) known(user, password string) bool {
	h := ids.hash(password)
	ids.mu.Lock()
	defer ids.mu.Unlock()
	id := ids.users[user]
	return id != nil && sameSecret(string(h[:]), string(id.hash[:]))
}

// enter records a proof, and counts one more session of that user.
func (ids *identities) enter(user, password string) {
	h := ids.hash(password)
	ids.mu.Lock()
	defer ids.mu.Unlock()
	id := ids.users[user]
	if id == nil {
		id = &identity{}
		ids.users[user] = id
	}
	id.password, id.hash, id.proven = password, h, time.Now()
	id.sessions++
}

// sameSecret compares two secrets in a time that tells neither where they differ nor
// how long they are. Every comparison of passwords is made here.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// exit takes back what the two have counted; with the last session the password goes.
func (ids *identities) exit(user string) {
	if user == "" {
		return
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if id := ids.users[user]; id != nil {
		if id.sessions--; id.sessions <= 0 {
			delete(ids.users, user)
		}
	}
}

// doubt forgets that a user was proven, because the server has refused a dial with its
// password: the next AUTH asks again.
func (ids *identities) doubt(user string) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if id := ids.users[user]; id != nil {
		id.proven = time.Time{}
	}
}

// has reports whether a session of a proven user lives.
func (ids *identities) has(user string) bool {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	return ids.users[user] != nil
}

// passwordOf serves the dials of a proven user's connections.
func (ids *identities) passwordOf(user string) (string, error) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if id := ids.users[user]; id != nil {
		return id.password, nil
	}
	return "", fmt.Errorf("no session of user %q is left", user)
}

// identify proves credentials and returns the key's user for them, who counts one
// session more from now on. If they are wrong, it answers so and returns false; if they
// cannot be proven now, the session ends. question is the AUTH with which the server is
// asked.
func (s *session) identify(user, password string, question []byte) (keyUser string, ok bool) {
	s.waitIdle()
	if s.failing() {
		s.hangUp()
		return "", false
	}
	ids := s.p.identities
	itself := user == s.p.ownUser() && !s.p.anonymous() // whose connections prove nothing
	if itself || !ids.enterProven(user, password) {
		ctx, cancel := s.p.within(s.p.cfg.UpstreamWait + s.p.cfg.DialTimeout)
		defer cancel()
		refusal, err := s.prove(ctx, s.rankOf(user, password), question)
		if err != nil {
			if !errors.Is(err, errGone) {
				s.p.noteDown(err)
			}
			s.hangUp()
			return "", false
		}
		if refusal != nil {
			s.refuseCredentials(refusal)
			return "", false
		}
		if itself {
			return "", true
		}
		first := !ids.has(user)
		ids.enter(user, password)
		if first && user == s.p.ownUser() {
			s.p.checkNow() // it may have got a password lately, and can be asked what it is like
		}
	}
	return user, true
}

// rankOf is the rank of a session's question.
func (s *session) rankOf(user, password string) rank {
	switch {
	case s.p.identities.known(user, password):
		return rankKnown
	case s.failures == nil:
		return rankFirst
	}
	return rankRepeated
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
		p.log.Warn("the server does not let a user in any more; closing its clients", "user", h.key.User, "clients", n)
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

// become makes the session that of a user whom identify has counted.
func (s *session) become(user string) bool {
	key := s.key
	key.User = user
	before := s.key.User
	if !s.moveTo(key) {
		s.p.identities.exit(user)
		return false
	}
	s.p.identities.exit(before)
	s.setAuthed()
	return true
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

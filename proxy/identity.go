package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
)

// Who a client is, the server decides: credentials that the proxy was not given are
// tried on a connection kept for that, the prover's. A user so proven has lanes of
// its own, keyed by its name; its password is kept in memory, for their dials, as
// long as a session of that user lives.

const (
	// provenFor is how long a proof spares the prover the same question.
	// It is short: a password that was changed is good for so long with a new client,
	// if an old one still has a connection.
	provenFor = 3 * time.Second
	// provesPerSecond and proveBurst bound how fast passwords can be tried.
	provesPerSecond = 200
	proveBurst      = 1000
)

// identities are the users that sessions have proven.
type identities struct {
	limit *rate.Limiter
	salt  [32]byte

	mu    sync.Mutex
	users map[string]*identity

	proving sync.Mutex // one question at a time
	prover  *batcher.Conn
}

type identity struct {
	password string
	hash     [sha256.Size]byte
	proven   time.Time
	sessions int
}

func newIdentities() *identities {
	ids := &identities{
		limit: rate.NewLimiter(provesPerSecond, proveBurst),
		users: map[string]*identity{},
	}
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

// passwordOf serves the dials of a proven user's connections.
func (ids *identities) passwordOf(user string) (string, error) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if id := ids.users[user]; id != nil {
		return id.password, nil
	}
	return "", fmt.Errorf("no session of user %q is left", user)
}

// prove asks the server whether credentials are right. It returns the server's error
// reply if they are not, and an error if it could not be asked.
func (p *Proxy) prove(ctx context.Context, question []byte) (refusal []byte, err error) {
	ids := p.identities
	if err := ids.limit.Wait(ctx); err != nil {
		return nil, err
	}
	ids.proving.Lock()
	defer ids.proving.Unlock()
	c := ids.prover
	if c == nil || c.Retired() {
		opts := batcher.Options{Kind: "control", Timeout: p.cfg.UpstreamTimeout, Closed: func(c *batcher.Conn) { p.conns.Delete(c) }}
		if c, err = p.dial(ctx, upstream.Key{Proto: 2}, opts); err != nil {
			return nil, err
		}
		ids.prover = c
	}
	w := &collector{left: 1, done: make(chan struct{})}
	if err := c.Submit(w, nil, question, 1); err != nil {
		return nil, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		c.Close() // its answer must not be taken for the next one's
		return nil, ctx.Err()
	}
	switch {
	case w.err != nil:
		return nil, w.err
	case bytes.Equal(w.buf, replyOK):
		return nil, nil
	}
	return w.buf, nil
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
	itself := user == s.p.ownUser()
	if itself || !ids.enterProven(user, password) {
		ctx, cancel := s.p.within(s.p.cfg.UpstreamWait + s.p.cfg.DialTimeout)
		defer cancel()
		refusal, err := s.p.prove(ctx, question)
		if err != nil {
			s.p.noteDown(err)
			s.hangUp()
			return "", false
		}
		if refusal != nil {
			s.answer(refusal)
			return "", false
		}
		if itself {
			return "", true
		}
		ids.enter(user, password)
	}
	return user, true
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

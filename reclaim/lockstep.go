package reclaim

import (
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

// A client that locks its reclaim sends a look at the lock (GET), or takes it at
// once (SET NX), asks (XAUTOCLAIM), and releases (a script). Clients differ in
// which steps they make; each step is judged alone, and the token ties them
// together: a release goes where its SET went.
//
// For a known target the real lock is neither read nor written. It protects
// nothing, as XAUTOCLAIM is atomic, and where its holder died without a lifetime
// it stops everybody for good.

// tokenKey names a lock granted here by what its holder will present.
type tokenKey struct {
	db         int
	key, token string
}

const (
	// tokenLife is how long a token without a lifetime is remembered.
	tokenLife = 10 * time.Minute
	// maxTokens bounds the locks granted at one time; beyond, SET is forwarded.
	maxTokens = 1 << 16
)

// get judges a look at the lock. Cold, it seems to be held, and the client leaves
// the stream alone; hot, it is free.
func (s *Session) get(cmd resp.Command) Verdict {
	e := s.e
	if cmd.Len() != 2 || !e.mayLock(cmd.Arg(1)) {
		return Verdict{}
	}
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.lockTarget(s.id, cmd.Arg(1))
	if t == nil {
		return s.awaitLearning(cmd.Arg(1), cmd, s.get)
	}
	t.asked = now
	if e.cfg.Mode == Observe || e.draining {
		return Verdict{}
	}
	switch t.temper(now) {
	case cold:
		e.cfg.Events.local("get")
		return answer(bulk(coldToken))
	case hot:
		t.local = now.Add(lockPatience)
		e.cfg.Events.local("get")
		return answer(missing(s.id.Proto))
	default:
		return s.forward("expired")
	}
}

// set judges the taking of the lock.
func (s *Session) set(cmd resp.Command) Verdict {
	e := s.e
	if !e.mayLock(cmd.Arg(1)) {
		return Verdict{}
	}
	l, ok := parseLock(cmd)
	if !ok {
		return Verdict{}
	}
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.lockTarget(s.id, l.key)
	if t == nil {
		return s.awaitLearning(l.key, cmd, s.set)
	}
	t.asked = now
	if e.cfg.Mode == Observe || e.draining || len(e.tokens) >= maxTokens || e.memory.full() || len(l.token) > maxNameBytes {
		return Verdict{}
	}
	if t.temper(now) == unknown && !now.Before(t.local) {
		return s.forward("expired")
	}
	life := l.ttl
	if life == 0 {
		life = tokenLife
	}
	t.local = now.Add(lockPatience)
	e.grant(tokenKey{s.id.DB, string(l.key), string(l.token)}, grant{until: now.Add(life), forever: l.ttl == 0})
	e.cfg.Events.local("set")
	return answer(replyOK)
}

// grant is a lock granted here.
type grant struct {
	until   time.Time
	forever bool // the client gave it no lifetime
}

// evalSHA judges what is done with a lock that is held: here if it was granted
// here, at the server if it was granted there.
func (s *Session) evalSHA(cmd resp.Command) Verdict {
	e := s.e
	sc, ok := parseScript(cmd)
	if !ok {
		return Verdict{}
	}
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.granted.Load() > 0 {
		k := tokenKey{s.id.DB, string(sc.key), string(sc.token)}
		if g, ok := e.tokens[k]; ok && now.Before(g.until) {
			if v, ok := e.useToken(k, g, sc, now); ok {
				e.cfg.Events.local("evalsha")
				return v
			}
		}
	}
	return Verdict{Watch: s.watchScript(sc.script)}
}

// useToken runs a lock script on a token, as the script does. ok is false for
// arguments that the script itself is to complain about.
func (e *Engine) useToken(k tokenKey, g grant, sc scriptCall, now time.Time) (v Verdict, ok bool) {
	if sc.script == scriptRelease {
		e.revoke(k)
		return answer(replyOne), true
	}
	if len(sc.rest) == 0 {
		return v, false
	}
	ms, err := strconv.ParseInt(string(sc.rest[0]), 10, 64)
	if err != nil || ms < 1 || ms > maxMillis/2 {
		return v, false
	}
	d := time.Duration(ms) * time.Millisecond
	if sc.script == scriptExtend {
		if g.forever {
			return answer(replyZero), true
		}
		if len(sc.rest) > 1 && string(sc.rest[1]) == "0" {
			d += g.until.Sub(now)
		}
	}
	e.grant(k, grant{until: now.Add(d)})
	return answer(replyOne), true
}

// expireTokens forgets the locks whose time is up. The lock is held.
func (e *Engine) expireTokens(now time.Time) {
	for k, g := range e.tokens {
		if !now.Before(g.until) {
			e.revoke(k)
		}
	}
}

func answer(reply []byte) Verdict { return Verdict{Action: Answer, Reply: reply} }

// bulk writes a string as a reply.
func bulk(s string) []byte {
	return []byte("$" + strconv.Itoa(len(s)) + "\r\n" + s + "\r\n")
}

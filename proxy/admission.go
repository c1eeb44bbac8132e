package proxy

import (
	"context"
	"time"

	"streamproxy/internal/upstream"
)

// A proxy without credentials of its own is whoever the server takes a stranger for: its default
// user, or nobody until a password has been given. The latter is an ordinary set-up, in which the
// password stands in the application's URL: clients prove themselves, and what none has proven
// is refused here as it is there.

// anonymous reports whether the proxy greets the server without credentials, and leaves to
// the server whom it lets in.
func (p *Proxy) anonymous() bool {
	t := &p.cfg.Upstream
	return t.Password == nil && t.User == "" && p.cfg.RequirePass == nil
}

// admits reports whether a client is in that has not proven who it is.
func (p *Proxy) admits() bool { return p.cfg.RequirePass == nil && !p.locked.Load() }

// noteAdmission takes what a dial of key shows of whether the server lets strangers in.
func (p *Proxy) noteAdmission(key upstream.Key, g upstream.Greeting, err error) {
	switch {
	case key.User.Proven() || !p.anonymous():
	case err == nil:
		p.setLocked(g.NoAuth, time.Now().Add(-g.Took))
	default:
		p.lockedOut(err)
	}
}

// lockedOut reports whether err says that the server is there, and wants a password that the
// proxy was not to have, or another than a client has proven before.
func (p *Proxy) lockedOut(err error) bool {
	if !p.anonymous() || !upstream.Denied(err) {
		return false
	}
	p.setLocked(true, time.Now())
	return true
}

// setLocked decides about clients that come from now on. Those that were in stay in, as at
// the server. A dial that began at a time says nothing any more if one has told that began later.
func (p *Proxy) setLocked(locked bool, at time.Time) {
	p.lockedMu.Lock()
	defer p.lockedMu.Unlock()
	if at.Before(p.lockedAt) {
		return
	}
	p.lockedAt = at
	switch {
	case p.locked.Swap(locked) == locked:
	case locked:
		p.log.Info("the server wants a password that the proxy was not given; clients must authenticate themselves")
	default:
		p.log.Info("the server lets clients in without a password")
	}
}

// knock finds out whether the server lets strangers in now: connections that were in when a
// password was set stay in, so only a new one tells.
func (p *Proxy) knock(ctx context.Context) {
	if !p.anonymous() {
		return
	}
	key := upstream.Key{Proto: 2}
	nc, g, err := p.dialer.DialFor(ctx, upstream.ForOne, key, "control")
	p.noteAdmission(key, g, err)
	if err == nil {
		_ = nc.Close() // it has told what it was for
	}
}

// ownKey is the key of what the proxy does for its own sake, such as the lease. Where no stranger
// is let in it is that of the user who strangers are elsewhere, while a client has proven that
// password.
func (p *Proxy) ownKey() upstream.Key {
	key := p.defaultKey()
	if p.locked.Load() {
		key.User = p.stranger()
	}
	return key
}

// stranger is the user as whom the proxy comes where no stranger is let in: the one that strangers
// are elsewhere, by the password of it that a client has proven last; the zero user if there is none.
func (p *Proxy) stranger() upstream.User { return p.identities.named(p.ownUser()) }

// admit lets a client in that waits before a server which has no password any more.
func (s *session) admit() {
	if !s.authed && s.p.admits() {
		s.setAuthed()
	}
}

package proxy

import "sync/atomic"

// What clients say of themselves is kept for as long as they stay: a name, and the credentials that
// a connection for them is greeted with. Nothing of it can be pushed back, nor be taken from them
// later. So short ones are kept in any case, and long ones as long as all of their kind have taken
// no more than a share of the memory. All of them count as what is in buffers does.

const (
	// shortName and shortLogin are up to how many bytes a client's name, and a user's name with a
	// password, are kept in any case. Tokens that serve as passwords are longer than names.
	shortName  = 256
	shortLogin = 2 << 10
	// maxKept is how much all names may take, and all credentials, before long ones are refused.
	// Under a memory limit it is a 32nd of that, if that is less.
	maxKept = 8 << 20
	// maxUserName is how long the name of a user may be. Connections are kept for a while by their
	// user, after the last client of it has left.
	maxUserName = 1 << 10
)

// keepsakes counts what is kept of one kind.
type keepsakes struct {
	short, most int64
	bytes       atomic.Int64
}

// init sets the bounds. A limit of 0 is none.
func (k *keepsakes) init(short, limit int64) {
	k.short, k.most = short, maxKept
	if limit > 0 {
		k.most = min(limit/32, maxKept)
	}
}

// take counts n bytes more, and reports whether they may be kept.
func (k *keepsakes) take(n int) bool {
	if k.bytes.Add(int64(n)) <= k.most || int64(n) <= k.short {
		return true
	}
	k.give(n)
	return false
}

// give counts n bytes less.
func (k *keepsakes) give(n int) { k.bytes.Add(-int64(n)) }

// setName keeps the client's name, or refuses that and returns false: the name it had before stays.
func (s *session) setName(name string) bool {
	before := s.name.Load()
	if !s.p.names.take(len(name)) {
		s.p.met(LimitMemory, "name refused", "client", s.remote(), "bytes", len(name))
		return false
	}
	if before != nil {
		s.p.names.give(len(*before))
		s.p.makeRoom()
	}
	if name == "" {
		s.name.Store(nil)
	} else {
		s.name.Store(&name)
	}
	return true
}

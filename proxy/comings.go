package proxy

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"streamproxy/internal/upstream"
)

// Clients that open a connection for each piece of work come to the same place again and again, and
// between two of them nobody is there. A crowd of users of whom each comes once, or now and then, must
// not take their place from them: what was left last would be the crowd's. So of the places where
// nobody is that one counts for most whose last but one coming is the latest. Who comes once has none,
// who comes seldom an old one. Rejected: how often somebody came. A place keeps that when nobody comes
// any more.

// comings are the last two times when somebody came to a hub, in nanoseconds; 0: there was none.
type comings struct{ last, before atomic.Int64 }

// note takes in that somebody comes.
func (c *comings) note() {
	if last := c.last.Swap(time.Now().UnixNano()); last != 0 {
		c.before.Store(last)
	}
}

// forget makes the next one the first.
func (c *comings) forget() {
	c.last.Store(0)
	c.before.Store(0)
}

// again reports whether somebody has come back.
func (c *comings) again() bool { return c.before.Load() != 0 }

// thereWithin is for how long a last but one coming counts as that somebody is there.
const thereWithin = time.Second

// there reports whether clients come so often that it is as if one stayed.
func (c *comings) there() bool {
	return c.again() && time.Since(time.Unix(0, c.before.Load())) < thereWithin
}

// byComings sorts hubs: who counts for least is in front, and of equals who was.
func byComings(list []*hub) []*hub {
	slices.SortStableFunc(list, func(a, b *hub) int {
		return cmp.Compare(a.comings.before.Load(), b.comings.before.Load())
	})
	return list
}

// comesBack reports whether clients have come back to a place of this user that nobody is at now.
// They had proven the same password. It is no proof.
func (p *Proxy) comesBack(user upstream.User) bool {
	return slices.ContainsFunc(p.unusedHubs(), func(h *hub) bool { return h.key.User == user && h.comings.again() })
}

// forgetComings makes a user a stranger again whose password the server has refused.
func (p *Proxy) forgetComings(user upstream.User) {
	for _, h := range p.unusedHubs() {
		if h.key.User == user {
			h.comings.forget()
		}
	}
}

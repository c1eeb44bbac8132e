package proxy

import (
	"container/list"
	"slices"

	"streamproxy/batcher"
)

// A hub that nobody is at any more keeps its connections for a while: who comes back, as the clients
// of a pod do, is served at once. But a client can be somebody else with every command, and leave a
// hub behind each time. So all unused hubs together keep a few connections, and those give up their
// own first to which nobody has come back, see comings.go, which was left first before others: for the
// bound, and for the lane of a user who is there. All do when the process has no descriptors or the
// server no room.

// maxUnused bounds the connections of the unused hubs, but for the one that was left last.
const maxUnused = 64

// unused are the hubs that nobody uses, which was left first in front. Proxy.mu guards them. The
// default key's is not one of them.
type unused struct{ order list.List }

// note puts h where it belongs; known: it has not been dropped.
func (u *unused) note(h *hub, known bool) {
	if h.unused != nil {
		u.order.Remove(h.unused)
		h.unused = nil
	}
	if known && h.users <= 0 && h.key != h.p.defaultKey() {
		h.unused = u.order.PushBack(h)
	}
}

// hubs lists them.
func (u *unused) hubs() []*hub {
	all := make([]*hub, 0, u.order.Len())
	for e := u.order.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*hub))
	}
	return all
}

// leftHub bounds what the unused hubs keep, after one more has been left.
func (p *Proxy) leftHub() {
	list := p.unusedHubs()
	if len(list) == 0 {
		return
	}
	n := 0
	for _, h := range list {
		n += h.held()
	}
	if n <= maxUnused {
		return
	}
	for _, h := range byComings(list[:len(list)-1]) {
		if n <= maxUnused {
			return
		}
		held := h.held()
		if p.discard(h) {
			n -= held
		}
	}
}

func (p *Proxy) unusedHubs() []*hub {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unused.hubs()
}

// discardAll closes what the unused hubs keep: there is no room for who is there.
func (p *Proxy) discardAll() {
	for _, h := range p.unusedHubs() {
		p.discard(h)
	}
}

// discardLane closes what an unused hub keeps that has a lane, and returns false if there is none but
// such as are as good as used.
func (p *Proxy) discardLane() bool {
	return slices.ContainsFunc(byComings(p.unusedHubs()), func(h *hub) bool {
		return h.lanesHeld() > 0 && !h.comings.there() && p.discard(h)
	})
}

// discard forgets an unused hub and closes its connections. It returns false if somebody uses it
// again, or something is under way there yet that was asked on behalf of who has left.
func (p *Proxy) discard(h *hub) bool {
	if h.busy() {
		return false
	}
	p.mu.Lock()
	ok := h.unused != nil && !p.stopping()
	if ok {
		p.dropHub(h)
	}
	p.mu.Unlock()
	if !ok {
		return false
	}
	for _, l := range h.lanes {
		if c := l.Conn(); c != nil {
			c.Close() // now: it counts as a lane until it ends
		}
	}
	h.closeSpares()
	p.wg.Go(h.close) // which waits, and this may be one of its connections' own reader
	return true
}

// held is how many connections the hub has, but for those in use.
func (h *hub) held() int { return h.lanesHeld() + h.spares.len() }

func (h *hub) lanesHeld() (n int) {
	for _, l := range h.lanes {
		if l.Holds() {
			n++
		}
	}
	return n
}

// busy reports whether something is under way on a lane.
func (h *hub) busy() bool {
	return slices.ContainsFunc(h.lanes, func(l *batcher.Lane) bool {
		c := l.Conn()
		return c == nil && l.Holds() || c != nil && c.InFlight() > 0
	})
}

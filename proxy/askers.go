package proxy

import (
	"slices"
	"sync"

	"streamproxy/batcher"
)

// A WAIT needs one connection and no other, which others may have in their hands, and so may
// hundreds of others. They stand in line for it and look again when it is given back, each in turn:
// looking every few milliseconds, all of them would keep everybody else from the hubs.

// askers are those who stand in line for a connection.
type askers struct {
	mu sync.Mutex
	of map[*batcher.Conn][]*turn
}

// turn is one's place.
type turn struct {
	// home is told once: the hub whose spare the connection would be, and which is in use until whoever got
	// it leaves it; nil if the connection is lost.
	home  chan *hub
	asked bool // another's WAIT has been answered there meanwhile
}

func (a *askers) join(c *batcher.Conn) *turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[*batcher.Conn][]*turn{}
	}
	t := &turn{home: make(chan *hub, 1)}
	a.of[c] = append(a.of[c], t)
	return t
}

// leave ends a turn that has not been taken; what it has been told meanwhile is its own.
func (a *askers) leave(c *batcher.Conn, t *turn) (late *hub) {
	if a.remove(c, t) {
		return nil
	}
	return <-t.home
}

func (a *askers) remove(c *batcher.Conn, t *turn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	line := a.of[c]
	i := slices.Index(line, t)
	if i >= 0 {
		a.set(c, slices.Delete(line, i, i+1))
	}
	return i >= 0
}

// next takes out whose turn it is, nil if nobody asks for c.
func (a *askers) next(c *batcher.Conn) *turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	line := a.of[c]
	if len(line) == 0 {
		return nil
	}
	t := line[0]
	a.set(c, slices.Delete(line, 0, 1))
	return t
}

// set is for a shorter line. The lock is held.
func (a *askers) set(c *batcher.Conn, line []*turn) {
	if len(line) == 0 {
		delete(a.of, c)
		return
	}
	a.of[c] = line
}

// lost tells all who ask for c that it is.
func (a *askers) lost(c *batcher.Conn) {
	for t := a.next(c); t != nil; t = a.next(c) {
		t.home <- nil
	}
}

// answered notes that a WAIT has been answered over c.
func (a *askers) answered(c *batcher.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.of[c] {
		t.asked = true
	}
}

// wasAsked reports whether one has since t was taken.
func (a *askers) wasAsked(t *turn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return t.asked
}

// handOver gives a connection that is about to be a spare to who asks for it, and reports whether
// there is anybody.
func (h *hub) handOver(c *batcher.Conn) bool {
	t := h.p.asked.next(c)
	if t == nil {
		return false
	}
	h.p.enterHub(h)
	t.home <- h
	return true
}

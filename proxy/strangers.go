package proxy

import (
	"context"
	"slices"
	"sync"
	"time"

	"streamproxy/batcher"
)

// A client that has had no reply yet may leave before it gets one. What was sent for it is executed all
// the same, and everybody waits for that: thousands that connect, ask for something slow and reset their
// connections at once would keep the server busy long after the last of them has left. At the server
// directly most are gone before it reads them. So where it takes long, few commands of strangers are
// under way on a lane at a time. The others wait here, and end with their clients. Rejected: a fixed
// number. So many as a far server needs are too many where each takes it long.

const (
	// firstStrangers is how many commands of strangers are under way on a lane at first; how long they
	// take makes that fewStrangers at least, and manyStrangers at most.
	firstStrangers = 64
	fewStrangers   = 16
	manyStrangers  = 1024
	// slowReply is how long a reply may take, beside the way, until it counts as slow.
	slowReply = 10 * time.Millisecond
	// promptReply is the same for as many commands as there are under way beyond fewStrangers.
	promptReply = 2 * time.Millisecond
	// retiredCheck is how often who waits for a lane looks whether it still is one.
	retiredCheck = 20 * time.Millisecond
)

// strangers are the clients of a hub that have had no reply yet, as their commands are under way.
type strangers struct {
	mu    sync.Mutex
	most  int // commands on one lane; 0: firstStrangers
	lanes map[*batcher.Conn]*underWay
}

// underWay is what they have under way on one lane.
type underWay struct {
	n       int              // commands
	moved   time.Time        // when one was answered last, or the first was sent
	waiting []*strangersTurn // the first first
}

// strangersTurn is for n commands.
type strangersTurn struct {
	n    int
	come chan struct{}
}

// take books n commands for a lane, if they may be sent at once.
func (t *strangers) take(lane *batcher.Conn, n int, slow time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.on(lane)
	return len(c.waiting) == 0 && t.admit(c, n, slow)
}

// wait books them when their turn has come, and reports false if ctx ends before, or the lane.
func (t *strangers) wait(ctx context.Context, lane *batcher.Conn, n int) bool {
	w := &strangersTurn{n, make(chan struct{})}
	t.mu.Lock()
	c := t.on(lane)
	c.waiting = append(c.waiting, w)
	if c.n == 0 { // the last was answered meanwhile
		t.next(c, 0)
	}
	t.mu.Unlock()
	look := time.NewTicker(retiredCheck)
	defer look.Stop()
	for {
		select {
		case <-w.come:
			return true
		case <-ctx.Done():
			return !t.resign(lane, w)
		case <-look.C:
			if lane.Retired() {
				return !t.resign(lane, w)
			}
		}
	}
}

// resign takes a turn back, and reports false if it has come in the same moment.
func (t *strangers) resign(lane *batcher.Conn, w *strangersTurn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.on(lane)
	i := slices.Index(c.waiting, w)
	if i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	t.clear(lane, c)
	return i >= 0
}

// give ends n commands, the first reply to which took so long; 0: they were not sent.
func (t *strangers) give(lane *batcher.Conn, n int, took, slow time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.on(lane)
	most := t.limit()
	switch {
	case took > slow:
		t.most = max(most/2, fewStrangers)
	case took > 0 && c.n > most/2:
		t.most = min(most+n, manyStrangers)
	}
	c.n -= n
	if took > 0 {
		c.moved = time.Now()
	}
	t.next(c, slow)
	t.clear(lane, c)
}

// on is what is under way on a lane. The lock is held.
func (t *strangers) on(lane *batcher.Conn) *underWay {
	c := t.lanes[lane]
	if c == nil {
		if t.lanes == nil {
			t.lanes = make(map[*batcher.Conn]*underWay)
		}
		c = new(underWay)
		t.lanes[lane] = c
	}
	return c
}

// clear forgets a lane on which nothing is. The lock is held.
func (t *strangers) clear(lane *batcher.Conn, c *underWay) {
	if c.n == 0 && len(c.waiting) == 0 {
		delete(t.lanes, lane)
	}
}

// next lets those go on whose turn it is. The lock is held.
func (t *strangers) next(c *underWay, slow time.Duration) {
	for len(c.waiting) > 0 && t.admit(c, c.waiting[0].n, slow) {
		close(c.waiting[0].come)
		c.waiting = slices.Delete(c.waiting, 0, 1)
	}
}

// admit books n more commands if they may be sent now: somebody's always may. The lock is held.
func (t *strangers) admit(c *underWay, n int, slow time.Duration) bool {
	if c.n > 0 && !t.fits(c, n, slow) {
		return false
	}
	if c.n == 0 {
		c.moved = time.Now()
	}
	c.n += n
	return true
}

// fits reports whether n more commands may be sent behind others. Beyond a few, those have to be answered
// sooner: what comes at once must not all be sent before it shows how long it takes. The lock is held.
func (t *strangers) fits(c *underWay, n int, slow time.Duration) bool {
	most := fewStrangers
	if silent := time.Since(c.moved); silent > slow {
		return false
	} else if silent <= slow-slowReply+promptReply {
		most = t.limit()
	}
	return c.n+n <= most
}

// limit is how many may be under way. The lock is held.
func (t *strangers) limit() int {
	if t.most == 0 {
		return firstStrangers
	}
	return t.most
}

// entered is what a session has under way as a stranger.
type entered struct {
	n     int
	lane  *batcher.Conn
	since time.Time
	known context.CancelFunc // ends its wait for more when it is none any more; nil: it does not wait
}

// slow is how long a reply may take that does not make strangers wait.
func (p *Proxy) slow() time.Duration { return slowReply + 2*p.handshakeTime() }

// takePlace waits until the session may have n more commands under way, and reports whether it has had to:
// its client may have left meanwhile.
func (s *session) takePlace(n int) (waited bool) {
	if s.weight.past.Load() || s.own != nil {
		return false
	}
	t := &s.hub.strangers
	if !t.take(s.conn, n, s.p.slow()) {
		waited = true
		if !s.awaitTurn(t, n) {
			return true
		}
	}
	s.mu.Lock()
	if s.entered.n == 0 {
		s.entered.lane, s.entered.since = s.conn, time.Now()
	}
	s.entered.n += n
	s.mu.Unlock()
	return waited
}

// awaitTurn is for who has to wait for that.
func (s *session) awaitTurn(t *strangers, n int) bool {
	s.flushLocal()
	patient, cancel := s.patienceOf(s.p.cfg.UpstreamTimeout)
	defer cancel()
	ctx, known := context.WithCancel(patient)
	defer known()
	s.mu.Lock()
	s.entered.known = known
	if s.weight.past.Load() {
		known()
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.entered.known = nil
		s.mu.Unlock()
	}()
	return t.wait(ctx, s.conn, n)
}

// letIn ends that the session is a stranger: a reply has come, or will not. The lock is held.
func (s *session) letIn() {
	if s.entered.n > 0 {
		s.home.Load().strangers.give(s.entered.lane, s.entered.n, time.Since(s.entered.since), s.p.slow())
		s.entered.n, s.entered.lane = 0, nil
	}
	if s.entered.known != nil {
		s.entered.known()
	}
}

// returnPlace is for n commands that were not sent after all. The lock is held.
func (s *session) returnPlace(n int) {
	if n = min(n, s.entered.n); n > 0 {
		s.home.Load().strangers.give(s.entered.lane, n, 0, s.p.slow())
		s.entered.n -= n
	}
}

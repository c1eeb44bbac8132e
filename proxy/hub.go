package proxy

import (
	"container/list"
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"streamproxy/batcher"
	"streamproxy/internal/upstream"
)

// hub is everything upstream for one key: its lanes, and its private connections.
// The two are the same kind of connection and change places: a spare becomes the
// lane when the lane is retired, and the retired one returns to the spares clean.
type hub struct {
	p      *Proxy
	key    upstream.Key
	lanes  []*batcher.Lane // the last one is for newcomers
	spares spares
	visits visits

	comings comings
	selects selects

	typical  typical // size of a reply
	borrowed atomic.Bool
	taken    atomic.Int64 // unix nanoseconds: when a private connection was asked for last
	novices  *semaphore.Weighted

	strangers strangers

	users   int           // sessions; Proxy.mu guards it
	unused  *list.Element // its place among the unused; Proxy.mu guards it
	dropped atomic.Bool   // nobody will come for its connections any more
}

func newHub(p *Proxy, key upstream.Key) *hub {
	h := &hub{p: p, key: key, novices: newNovices()}
	h.spares.room = &p.room
	for range p.cfg.UpstreamConns + 1 {
		h.lanes = append(h.lanes, batcher.NewLane(batcher.LaneOptions{
			Dial:   h.dialLane,
			Pause:  p.dialer.Gate.Pause,
			Final:  h.denied,
			Events: &p.cfg.BatchEvents,
		}))
	}
	return h
}

// offer sees to it that a lane which nobody has asked for yet gets a spare as its connection. It is
// not dialled for that: a server that lets this user in no more would be heard of by those who need
// no new connection.
func (h *hub) offer(l *batcher.Lane) {
	switch {
	case h.p.lanesFull():
	case h.spares.len() > 0:
		l.Want()
	case h.spares.hire(1, 1):
		h.p.wg.Go(h.dialOffer)
	}
}

// dialOffer dials what is to become a lane, as a spare.
func (h *hub) dialOffer() {
	ctx, cancel := h.p.within(h.p.cfg.DialTimeout)
	defer cancel()
	c, err := h.dial(ctx, "lane")
	h.spares.dialed()
	switch {
	case err != nil: // whoever needs one will hear of it
	case c.Unshare():
		h.giveBack(c)
	default:
		c.Close()
	}
}

// lane is the lane to which the session with this id is pinned.
func (h *hub) lane(id int64) *batcher.Lane {
	return h.lanes[int(id%int64(len(h.lanes)-1))]
}

// newcomers is the lane of sessions that have had no reply yet. Nobody knows what theirs will
// be like: many large ones at a time are for minutes of a busy server's turns on the way, and
// who is known to get small ones does not stand behind them.
func (h *hub) newcomers() *batcher.Lane { return h.lanes[len(h.lanes)-1] }

// dialLane gets a lane its connection: a spare at once if there is one, so that
// nobody waits for a dial when a lane is retired.
func (h *hub) dialLane(ctx context.Context, _ *batcher.Lane) (*batcher.Conn, error) {
	if c := h.shareSpare(); c != nil {
		h.staff()
		return c, nil
	}
	c, err := h.dial(ctx, "lane")
	if h.denied(err) {
		h.p.expel(h)
	}
	return c, err
}

// denied reports whether the server lets the hub's user in no more.
func (h *hub) denied(err error) bool { return denies(h.key, err) }

// barred reports whether err says that the key's user may no more do what its connections begin with,
// such as SELECT. Those that there are go on.
func (h *hub) barred(err error) bool { return h.key.User.Proven() && upstream.Forbidden(err) }

// denies reports whether err says that the server lets a key's user in no more. It is final for
// those whose password a client has proven; the proxy's own may be read anew.
func denies(key upstream.Key, err error) bool { return key.User.Proven() && upstream.Denied(err) }

// shareSpare makes a lane's connection of a spare, or returns nil if none is fit. One
// whose last reply is being booked at this moment is not, and goes back.
func (h *hub) shareSpare() *batcher.Conn {
	var unfit []*batcher.Conn
	defer func() {
		for _, c := range unfit {
			h.giveBack(c)
		}
	}()
	for c := h.spares.pop(); c != nil; c = h.spares.pop() {
		if c.Share(h.p.cfg.Flush, h.p.handshakeTime()) {
			return c
		}
		unfit = append(unfit, c)
	}
	return nil
}

// dial opens a connection of the hub's key.
func (h *hub) dial(ctx context.Context, kind string) (*batcher.Conn, error) {
	rank := upstream.ForOne
	if kind == "lane" {
		rank = upstream.ForMany
	}
	return h.dialAs(ctx, rank, kind)
}

// dialAs is dial with a place at the gate.
func (h *hub) dialAs(ctx context.Context, rank upstream.Rank, kind string) (*batcher.Conn, error) {
	c, err := h.p.dial(ctx, rank, h.key, batcher.Options{
		Kind:    kind,
		Shared:  kind == "lane",
		Policy:  h.p.cfg.Flush,
		Timeout: h.p.cfg.UpstreamTimeout,
		Closed:  h.lost,
		Emptied: h.emptied,
	})
	if err == nil && h.key.DB != 0 { // which is what a connection begins in
		h.selects.note()
	}
	return c, err
}

// lost is called when a connection of the hub has ended. A lane that has lost its
// connection while it was in use gets another at once, before it is asked for.
func (h *hub) lost(c *batcher.Conn) {
	h.p.forgetConn(c)
	h.p.asked.lost(c)
	h.spares.take(c)
	for _, l := range h.lanes {
		if l.Lost(c) && !h.p.stopping() && h.used() {
			h.p.health.doubted.Store(true)
			h.p.checkNow()
			l.Want()
		}
	}
}

// emptied takes a retired connection that owes nothing any more.
func (h *hub) emptied(c *batcher.Conn) {
	h.p.enterHub(h) // for a moment it is neither a lane's nor a spare
	defer h.p.leaveHub(h)
	for _, l := range h.lanes {
		l.Replace(c)
	}
	if !c.Unshare() {
		c.Close()
		return
	}
	h.giveBack(c)
}

// borrow takes a private connection, dialling if there is no spare. It tries until
// ctx ends or the server does not know the user any more.
func (h *hub) borrow(ctx context.Context) (*batcher.Conn, error) {
	return h.take(ctx, (*spares).last, claim{regular: true})
}

// take is borrow with a way to choose among the spares, for who claims one so.
func (h *hub) take(ctx context.Context, choose func(*spares) *batcher.Conn, who claim) (*batcher.Conn, error) {
	h.noteTaken()
	for {
		c, w := h.spares.reserve(choose, who)
		h.staff()
		if w != nil {
			var err error
			if c, err = h.wait(ctx, w); err != nil {
				return nil, err
			}
		}
		if !c.Retired() {
			return c, nil
		}
	}
}

// ready is take for what need not be waited for; nil if that is nothing. Mostly there is something,
// and what a wait needs costs as much as the rest.
func (h *hub) ready(choose func(*spares) *batcher.Conn, who claim) *batcher.Conn {
	c := h.spares.lend(choose, who)
	if c == nil || c.Retired() {
		return nil
	}
	h.noteTaken()
	h.staff()
	return c
}

// noteTaken notes that a private connection is wanted.
func (h *hub) noteTaken() {
	h.taken.Store(time.Now().UnixNano())
	if h.borrowed.Swap(true) { // who comes once, and is another then, needs no spares
		h.p.warm.Store(h)
	}
}

// giveBack takes a private connection that is clean. One that a late UNBLOCK may hit is
// closed.
func (h *hub) giveBack(c *batcher.Conn) {
	if c.Aimed() {
		c.Close()
		return
	}
	h.add(c, false)
}

// add makes a connection a spare that is given back, or has been dialled.
func (h *hub) add(c *batcher.Conn, dialled bool) {
	if h.handOver(c) {
		return
	}
	h.spares.add(c, dialled)
	// Looked at afterwards: what ends from now on is taken out by lost, drop or Close.
	if c.Retired() || h.p.stopping() || h.dropped.Load() {
		h.spares.take(c)
		c.Close()
	}
}

// trim closes spares that have been idle for long, beyond those that the key in use
// keeps ready, and those that transactions needed lately. In the place of each that is in use another
// is dialled: of those as many again stay for a while, or a client that comes every few seconds would
// have one closed behind it and one dialled each time.
func (h *hub) trim(now time.Time) {
	keep := 0
	if h.p.warm.Load() == h {
		keep = h.p.cfg.PrivateMinIdle + max(h.p.txPeak.recent()-len(h.p.txSlots), 0)
		if now.Sub(time.Unix(0, h.taken.Load())) < peakSpan {
			keep += h.p.cfg.PrivateMinIdle
		}
	}
	if h.p.room.full() {
		keep = max(keep, keptFull)
	}
	for _, c := range h.spares.idleSince(now.Add(-spareIdle), keep) {
		c.Close()
	}
	h.staff()
}

// laneIdle is how long a lane other than the default key's stays open unused.
const laneIdle = 5 * time.Minute

// closeIdle closes lanes that nobody uses.
func (h *hub) closeIdle() {
	if h.key == h.p.defaultKey() {
		return
	}
	for _, l := range h.lanes {
		// Retired, not closed: somebody may be sending something at this moment.
		if c := l.Conn(); c != nil && c.IdleFor() > laneIdle {
			c.Retire()
		}
	}
	h.p.dropVacant(h)
}

// used reports whether sessions use the hub.
func (h *hub) used() bool {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	return h.users > 0 || h.key == h.p.defaultKey()
}

// connected reports whether the hub has a connection to offer.
func (h *hub) connected() bool {
	return h.anyLane() != nil || h.spares.len() > 0
}

// vacant reports whether nothing is left in the hub.
func (h *hub) vacant() bool { return h.held() == 0 }

// close ends the lanes and the spares.
func (h *hub) close() {
	for _, l := range h.lanes {
		l.Close()
	}
	h.closeSpares()
}

func (h *hub) closeSpares() {
	for c := h.spares.pop(); c != nil; c = h.spares.pop() {
		c.Close()
	}
}

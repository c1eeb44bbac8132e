package proxy

import (
	"context"
	"fmt"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
	"streamproxy/reclaim"
)

// calls runs the commands of reclaim: few at a time with small replies on the lanes, among those of
// the clients, and many, or those that bring entries, over private connections, as they would stand
// before what others wait for.
type calls struct{ p *Proxy }

var _ reclaim.Upstream = calls{}

// Do implements reclaim.Upstream.
func (c calls) Do(ctx context.Context, as reclaim.Identity, commands []byte, n int) ([][]byte, error) {
	return c.run(ctx, keyOf(as), commands, n)
}

// DoUpTo implements reclaim.Upstream.
func (c calls) DoUpTo(ctx context.Context, as reclaim.Identity, commands []byte, n, most int) ([][]byte, error) {
	h := c.p.hubOf(keyOf(as))
	defer c.p.leaveHub(h)
	return c.apart(ctx, reclaim.Client(ctx), h, commands, newCollector(n, most))
}

// apart sends the commands over a private connection, if there is one to be had soon.
func (c calls) apart(ctx, client context.Context, h *hub, commands []byte, w *collector) ([][]byte, error) {
	soon, cancel := context.WithTimeout(client, apartWait)
	conn, err := h.borrow(soon)
	cancel()
	switch {
	case client.Err() != nil && ctx.Err() == nil:
		if err == nil {
			h.giveBack(conn)
		}
		return nil, reclaim.ErrNotSent
	case err != nil: // a lane is better than nothing
		return c.onLane(ctx, h, commands, w)
	}
	return c.runOver(ctx, h, conn, commands, w)
}

// apartWait is how long a private connection is waited for.
const apartWait = time.Second

func keyOf(as reclaim.Identity) upstream.Key {
	return upstream.Key{User: upstream.User(as.User), DB: as.DB, Proto: as.Proto}
}

// Control implements reclaim.Upstream.
func (c calls) Control(ctx context.Context, commands []byte, n int) ([][]byte, error) {
	return c.run(ctx, c.p.ownKey(), commands, n)
}

func (c calls) run(ctx context.Context, key upstream.Key, commands []byte, n int) ([][]byte, error) {
	h := c.p.hubOf(key)
	defer c.p.leaveHub(h)
	if len(commands) > laneTurn { // as a client's pipeline of that size
		return c.apart(ctx, ctx, h, commands, newCollector(n, 0))
	}
	return c.onLane(ctx, h, commands, newCollector(n, 0))
}

func (c calls) onLane(ctx context.Context, h *hub, commands []byte, w *collector) ([][]byte, error) {
	n := w.left
	lane := h.lane(0)
	for {
		if lane.Conn() == nil && c.p.lanesFull() {
			return c.runPrivately(ctx, h, commands, w)
		}
		conn, err := lane.Await(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", reclaim.ErrNotSent, err)
		}
		seat := new(batcher.Seat)
		if !conn.Join(seat) {
			lane.Replace(conn) // retired since, and perhaps somebody's own
			continue
		}
		if conn.Submit(w, seat, commands, n) != nil {
			conn.Leave(seat)
			continue
		}
		select {
		case <-w.done:
			conn.Leave(seat)
			return w.replies(n)
		case <-ctx.Done():
			return nil, ctx.Err() // the replies find their way to nobody
		}
	}
}

// runPrivately is onLane where there may not be one more lane.
func (c calls) runPrivately(ctx context.Context, h *hub, commands []byte, w *collector) ([][]byte, error) {
	conn, err := h.borrow(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", reclaim.ErrNotSent, err)
	}
	return c.runOver(ctx, h, conn, commands, w)
}

// runOver sends the commands over a private connection, and gives that back.
func (c calls) runOver(ctx context.Context, h *hub, conn *batcher.Conn, commands []byte, w *collector) ([][]byte, error) {
	n := w.left
	if conn.Submit(w, nil, commands, n) != nil {
		conn.Close()
		return nil, reclaim.ErrNotSent
	}
	select {
	case <-w.done:
		h.giveBack(conn)
		return w.replies(n)
	case <-ctx.Done():
		conn.Close() // its replies must not be the next user's
		return nil, ctx.Err()
	}
}

// collector keeps all replies to a number of commands.
type collector struct {
	left int
	buf  []byte
	err  error
	done chan struct{}

	most int // bytes that are kept of each reply, 0 for all
	kept int // of the reply under way
	ends []int
	scan resp.ReplyScanner
}

// newCollector makes one for n replies, of each of which no more than most bytes are kept; 0
// is all.
func newCollector(n, most int) *collector {
	return &collector{left: n, most: most, done: make(chan struct{})}
}

var _ batcher.Sink = (*collector)(nil)

func (w *collector) take(n int) {
	if w.left -= n; w.left == 0 && n > 0 {
		close(w.done)
	}
}

// Reply implements batcher.Sink.
func (w *collector) Reply(b []byte, done, _ int) {
	if w.most == 0 {
		w.buf = append(w.buf, b...)
	} else {
		w.keep(b)
	}
	w.take(done)
}

// keep keeps the beginning of each reply.
func (w *collector) keep(b []byte) {
	for len(b) > 0 {
		n, done, err := w.scan.Scan(b)
		if err != nil {
			w.err = err
			return
		}
		k := min(n, w.most-w.kept)
		w.buf = append(w.buf, b[:k]...)
		if w.kept += k; done {
			w.ends = append(w.ends, len(w.buf))
			w.kept = 0
		}
		b = b[n:]
	}
}

// Flush implements batcher.Sink.
func (w *collector) Flush() {}

// Fail implements batcher.Sink.
func (w *collector) Fail(n int, err error) {
	if w.err == nil {
		w.err = err
		if err == batcher.ErrNotSent && len(w.buf) == 0 {
			w.err = reclaim.ErrNotSent
		}
	}
	w.take(n)
}

// Pace implements batcher.Sink.
func (w *collector) Pace(int64, time.Duration) bool { return true }

// replies splits what has come.
func (w *collector) replies(n int) ([][]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	list := make([][]byte, 0, n)
	if w.most > 0 {
		from := 0
		for _, to := range w.ends {
			list = append(list, w.buf[from:to:to])
			from = to
		}
		return list, nil
	}
	for b := w.buf; len(b) > 0; {
		m, err := frameLen(b)
		if err != nil {
			return nil, err
		}
		list = append(list, b[:m:m])
		b = b[m:]
	}
	return list, nil
}

// frameLen is the length of the complete reply at the start of b.
func frameLen(b []byte) (int, error) {
	var scan resp.ReplyScanner
	n, done, err := scan.Scan(b)
	if err == nil && !done {
		err = fmt.Errorf("reply of %d bytes is incomplete", len(b))
	}
	return n, err
}

// withoutFirst takes the first n replies off b.
func withoutFirst(b []byte, n int) []byte {
	for ; n > 0; n-- {
		m, err := frameLen(b)
		if err != nil {
			return b
		}
		b = b[m:]
	}
	return b
}

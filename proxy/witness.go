package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
)

// The id of a connection means that connection at one run of one server, and somebody else's
// at the next. Behind one address the server may be exchanged for another at any time,
// while a connection to the one before still hangs there. So an id is used only over a
// control connection, the witness, to which the server itself has shown the connection that
// is meant, by a name that no other has. Rejected: the server's run, which not every
// client's user may ask for, and addresses, which whatever forwards connections exchanges.

// errStranger says that there is no witness: what a connection's id means at the server
// that can be asked is not known.
var errStranger = errors.New("the server that can be asked does not know the connection")

// connNames returns the names of a process's connections at the server: those of a kind
// begin and end alike, and each is the only one.
func connNames(host string) func(kind string) string {
	var n atomic.Int64
	process := rand.Text()[:13] // 65 bits
	return func(kind string) string {
		return upstream.ConnName(fmt.Sprintf("%s:%s-%d", host, process, n.Add(1)), kind)
	}
}

// agent is the key of the connections by which the proxy acts for a client: its own, or where the
// server lets no stranger in those of the client's user. There it takes the password that was proven
// last: the client's own may have been changed while its command was blocked.
func (p *Proxy) agent(client upstream.Key) upstream.Key {
	switch {
	case !p.locked.Load():
		return p.defaultKey()
	case !client.User.Proven():
		return upstream.Key{Proto: 2}
	}
	return upstream.Key{User: p.identities.named(client.User.Name), Proto: 2}
}

// witness returns a control connection over which the id of c means c; client is the key of
// whoever wants to know. Errors: errStranger if there is none; the server's own error, if that asks for patience, or the context's.
func (p *Proxy) witness(ctx context.Context, client upstream.Key, c *batcher.Conn) (*batcher.Conn, error) {
	for {
		agent := p.agent(client)
		by, err := p.controlLane(agent).Await(ctx)
		if other := p.agent(client); denies(agent, err) && other != agent && p.identities.known(other.User) {
			continue // of two passwords one is good no longer
		}
		if err != nil {
			return nil, err
		}
		found, err := p.find(ctx, by, c)
		switch {
		case err != nil:
			return nil, err
		case found:
			return by, nil
		case !by.OlderThan(c):
			return nil, errStranger
		}
		by.Retire() // to where c leads a newer one will lead too
	}
}

// find reports whether the server that by leads to knows c.
func (p *Proxy) find(ctx context.Context, by, c *batcher.Conn) (bool, error) {
	if c.FoundBy(by) {
		return true, nil
	}
	if c.Name() == "" {
		return false, errStranger
	}
	list, err := p.ask(ctx, by, "CLIENT", "LIST", "ID", strconv.FormatInt(c.ID(), 10))
	var refusal *upstream.ReplyError
	if errors.As(err, &refusal) && !upstream.Busy(err) {
		p.cannotList.Do(func() {
			p.log.Warn("the server does not tell whose connection an id is; what blocks will not be called back", "error", err)
		})
		return false, errStranger
	}
	if err != nil || !bytes.Contains(list, []byte(" name="+c.Name()+" ")) {
		return false, err
	}
	c.Found(by)
	return true, nil
}

// sameRun reports whether the ids of two connections are of the same run of the same
// server.
func (p *Proxy) sameRun(client upstream.Key, a, b *batcher.Conn) bool {
	ctx, cancel := p.within(p.cfg.UpstreamWait)
	defer cancel()
	of, err := p.witness(ctx, client, a)
	if err != nil {
		return false
	}
	other, err := p.witness(ctx, client, b)
	return err == nil && of == other
}

// ask sends one command over a connection that is shared by nobody who minds, and returns
// the reply; an *upstream.ReplyError if that is an error.
func (p *Proxy) ask(ctx context.Context, c *batcher.Conn, args ...string) ([]byte, error) {
	return askRaw(ctx, c, resp.AppendCommand(nil, args...))
}

// askRaw is ask with a command as it travels.
func askRaw(ctx context.Context, c *batcher.Conn, raw []byte) ([]byte, error) {
	w := &collector{left: 1, done: make(chan struct{})}
	if err := c.Submit(w, nil, raw, 1); err != nil {
		return nil, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		return nil, ctx.Err() // the reply finds its way to nobody
	}
	switch {
	case w.err != nil:
		return nil, w.err
	case len(w.buf) > 0 && w.buf[0] == '-':
		return nil, &upstream.ReplyError{Reply: w.buf}
	}
	return w.buf, nil
}

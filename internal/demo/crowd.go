package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// connecting bounds the connects of a side under way at a time: a server's queue of
// unaccepted connections is short.
const connecting = 32

// crowd is the load: as many clients on each side, alike in all but the way.
type crowd struct {
	stage   *stage
	count   int
	prefix  string // of the keys, so that two demos on one server do not meet
	clients []*client
}

func newCrowd(st *stage, count int) *crowd {
	return &crowd{stage: st, count: count, prefix: "streamproxy:demo:" + rand.Text()}
}

// open connects everybody and lets each store its key.
func (c *crowd) open(ctx context.Context) error {
	for _, s := range []*side{c.stage.direct, c.stage.proxied} {
		clients := make([]*client, c.count)
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(connecting)
		for i := range clients {
			g.Go(func() (err error) {
				clients[i], err = c.join(ctx, s, i)
				return err
			})
		}
		err := g.Wait()
		for _, cl := range clients {
			if cl != nil {
				c.clients = append(c.clients, cl)
			}
		}
		if err != nil {
			return fmt.Errorf("demo: %s: %w", s.name, err)
		}
	}
	return nil
}

// join connects one client. What was stored is there even if an error follows, so that
// close deletes it.
func (c *crowd) join(ctx context.Context, s *side, number int) (*client, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	cl := newClient(conn, &s.meter, fmt.Sprintf("%s:%s:%d", c.prefix, s.name, number), number)
	if err := cl.do(cl.set, cl.stored); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return cl, nil
}

// run lets everybody send until ctx ends or one of them fails.
func (c *crowd) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, cl := range c.clients {
		g.Go(func() error { return cl.run(ctx) })
	}
	return g.Wait()
}

// head, line and table implement view.
func (c *crowd) head() string { return head("direct") + " | " + head("proxied") }

func (c *crowd) line(took time.Duration) string {
	return row(c.stage.direct.recent(took)) + " | " + row(c.stage.proxied.recent(took))
}

func (c *crowd) table(took time.Duration) string {
	return table(c.stage.direct.recent(took), c.stage.proxied.recent(took), liveRows)
}

// close sends everybody home, together.
func (c *crowd) close() error {
	faults := make([]error, len(c.clients))
	var g errgroup.Group
	for i, cl := range c.clients {
		g.Go(func() error {
			faults[i] = cl.leave()
			return nil
		})
	}
	_ = g.Wait() // the faults are kept one by one
	c.clients = nil
	return errors.Join(faults...)
}

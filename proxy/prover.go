package proxy

import (
	"bytes"
	"context"
	"errors"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/upstream"
)

// Credentials are tried on connections kept for that, the provers: one where there is
// little to ask, more while many ask at a time, so that nobody's question waits for the
// answers to others'. Rejected: several questions under way on one connection. Redis from
// 7.2 on says nothing to a wrong AUTH while an earlier reply of the connection has not
// left, and every later answer would be taken for the one before.

const (
	// maxProvers bounds the questions under way, and so the provers.
	maxProvers = 64
	// keptProvers is how many stay when there is nothing to ask.
	keptProvers = 1
)

// errGone is a question whose asker has left before it was asked.
var errGone = errors.New("the client has left")

// provers ask the server whether credentials are right.
type provers struct {
	turns turns
	idle  spares
}

// prove asks the server whether credentials are right, on behalf of a session. It returns
// the server's error reply if they are not, and an error if it could not be asked.
func (s *session) prove(ctx context.Context, r rank, question []byte) (refusal []byte, err error) {
	pr := &s.p.identities.provers
	waited, err := s.takeTurn(ctx, r)
	if err != nil {
		return nil, err
	}
	defer pr.turns.give()
	if waited && s.left.Load() {
		return nil, errGone // those who stay for the answer come first
	}
	for lost := false; ; {
		ask := s.p.prover
		if lost {
			ask = s.p.dialProver // the idle ones may have been ended along with the one that was lost
		}
		c, err := ask(ctx)
		if err != nil {
			return nil, err
		}
		w := &collector{left: 1, done: make(chan struct{})}
		if c.Submit(w, nil, question, 1) != nil {
			continue // it has ended since
		}
		select {
		case <-w.done:
			s.p.releaseProver(c)
		case <-ctx.Done():
			c.Close() // its answer must not be taken for the next one's
			return nil, ctx.Err()
		}
		switch {
		case w.err != nil && !lost:
			// A prover is at the server whoever it has asked for last. Whoever ends the connections of a
			// user ends it too, and nobody's password is wrong for that.
			lost = true
			continue
		case w.err != nil:
			return nil, w.err
		case bytes.Equal(w.buf, replyOK):
			return nil, nil
		}
		return w.buf, nil
	}
}

// takeTurn waits for the turn to ask, until ctx ends or the client resets its connection. What is
// asked is then answered: a prover that is given up has to be dialled anew.
func (s *session) takeTurn(ctx context.Context, r rank) (waited bool, err error) {
	end, _ := ctx.Deadline()
	queue, leave := s.patienceOf(time.Until(end))
	defer leave()
	waited, err = s.p.identities.provers.turns.take(queue, r)
	if err != nil && s.resigned() {
		err = errGone
	}
	return waited, err
}

// prover takes an idle prover, or dials one. While several questions are under way, one
// more prover is dialled ahead of the next.
func (p *Proxy) prover(ctx context.Context) (*batcher.Conn, error) {
	pr := &p.identities.provers
	for c := pr.idle.pop(); c != nil; c = pr.idle.pop() {
		if !c.Retired() {
			p.proverAhead()
			return c, nil
		}
	}
	p.proverAhead()
	return p.dialProver(ctx)
}

func (p *Proxy) dialProver(ctx context.Context) (*batcher.Conn, error) {
	return p.dial(ctx, upstream.ForRegular, upstream.Key{Proto: 2}, batcher.Options{
		Kind:    "control",
		Timeout: p.cfg.UpstreamTimeout,
		Closed: func(c *batcher.Conn) {
			p.forgetConn(c)
			p.identities.provers.idle.take(c)
		},
	})
}

// proverAhead sees to it that whoever asks next finds a prover that is there, unless
// hardly anybody asks.
func (p *Proxy) proverAhead() {
	pr := &p.identities.provers
	if n := pr.turns.taken(maxProvers); n < 2 || n == maxProvers || p.stopping() || !pr.idle.wantMore(1) {
		return
	}
	p.wg.Go(func() {
		ctx, cancel := p.within(p.cfg.DialTimeout)
		defer cancel()
		c, err := p.dialProver(ctx)
		pr.idle.dialed()
		if err == nil {
			p.releaseProver(c)
		}
	})
}

// releaseProver makes a prover idle whose question has been answered.
func (p *Proxy) releaseProver(c *batcher.Conn) {
	pr := &p.identities.provers
	pr.idle.push(c)
	// Looked at afterwards: one that ends from now on is taken out as it is closed.
	if c.Retired() || p.stopping() {
		pr.idle.take(c)
		c.Close()
	}
}

// trimProvers closes the provers that nobody has needed lately.
func (p *Proxy) trimProvers(now time.Time) {
	for _, c := range p.identities.provers.idle.idleSince(now.Add(-spareIdle), keptProvers) {
		c.Close()
	}
}

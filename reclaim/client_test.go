package reclaim

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"streamproxy/internal/resp"
)

// testClient is a client connection and the part of a proxy that serves it: it
// carries out verdicts as package proxy does.
type testClient struct {
	t  testing.TB
	e  *Engine
	up Upstream
	s  *Session
	id Identity
	// gone, if set, is asked when a reply is about to be written: has the client left?
	gone func() bool
	// written gets each reply that reaches the client.
	written func(reply string, handout bool)
	actions []Action
	// dropped: the last reply carried entries that the engine had claimed, and went
	// back to it.
	dropped bool
}

// errGone is what a command of a client that has left comes to.
var errGone = errors.New("the client has left")

func newTestClient(t testing.TB, e *Engine, up Upstream, id Identity) *testClient {
	return &testClient{t: t, e: e, up: up, s: e.Join(id), id: id}
}

func commandOf(args ...string) string { return string(resp.AppendCommand(nil, args...)) }

// do sends one command and returns the reply.
func (c *testClient) do(args ...string) string {
	c.t.Helper()
	reply, err := c.try(args...)
	if err != nil {
		c.t.Fatalf("%v: %v", args, err)
	}
	return reply
}

func (c *testClient) try(args ...string) (string, error) {
	raw := []byte(commandOf(args...))
	return c.carry(c.s.Command(scanCommand(raw)), raw, 1)
}

// block sends a transaction and returns the replies in one piece.
func (c *testClient) block(list ...[]string) string {
	c.t.Helper()
	reply, err := c.tryBlock(list...)
	if err != nil {
		c.t.Fatalf("%v: %v", list, err)
	}
	return reply
}

func (c *testClient) tryBlock(list ...[]string) (string, error) {
	var raw []byte
	var cmds []resp.Command
	for _, args := range list {
		one := []byte(commandOf(args...))
		cmds = append(cmds, scanCommand(one))
		raw = append(raw, one...)
	}
	return c.carry(c.s.Block(cmds), raw, len(list))
}

// carry does what a verdict says.
func (c *testClient) carry(v Verdict, raw []byte, n int) (string, error) {
	c.actions = append(c.actions, v.Action)
	if v.Action == Defer {
		v = v.Task.Run(context.Background())
	}
	switch v.Action {
	case Answer:
		return c.write(string(v.Reply), v.Handout)
	case Fail:
		return "", v.Err
	case Defer:
		c.t.Fatal("a task's verdict was deferred again")
	}
	replies, err := c.up.Do(context.Background(), c.id, append(bytes.Clone(v.Ahead), raw...), v.AheadN+n)
	if err != nil {
		if v.Watch != nil {
			v.Watch.Seen(nil)
		}
		if v.Parked != nil {
			v.Parked.End(nil)
		}
		return "", err
	}
	reply := bytes.Join(replies[v.AheadN:], nil)
	if v.Watch != nil {
		v.Watch.Seen(reply)
	}
	if v.Parked != nil {
		return c.unpark(v.Parked, reply)
	}
	return c.write(string(reply), nil)
}

// unpark ends a blocked read that the server has answered.
func (c *testClient) unpark(p *Parked, reply []byte) (string, error) {
	if !isNull(reply) {
		p.End(reply)
		return c.write(string(reply), nil)
	}
	o := p.Nil(context.Background(), reply)
	if o.Again {
		c.t.Fatal("a read that nobody called back was to be sent again")
	}
	return c.write(string(o.Reply), o.Handout)
}

// write brings a reply to the client, unless it has left.
func (c *testClient) write(reply string, h *Handout) (string, error) {
	if c.gone != nil && c.gone() {
		if c.dropped = h != nil; c.dropped {
			h.Drop()
		}
		return reply, errGone
	}
	if h != nil {
		h.Written()
	}
	if c.written != nil {
		c.written(reply, h != nil)
	}
	return reply, nil
}

// blockingRead sends a read with BLOCK and waits, as a private connection does: for
// entries, for its time, or to be called back.
func (c *testClient) blockingRead(ctx context.Context, srv *fakeServer, args []string) (string, error) {
	raw := []byte(commandOf(args...))
	v := c.s.Command(scanCommand(raw))
	c.actions = append(c.actions, v.Action)
	p := v.Parked
	if p == nil {
		return "", errors.New("not parked")
	}
	call, _ := parseGroupRead(scanCommand(raw))
	left := call.block
	for {
		srv.mu.Lock()
		changed := srv.changed
		srv.mu.Unlock()
		replies, err := c.up.Do(context.Background(), c.id, raw, 1)
		if err != nil {
			p.End(nil)
			return "", err
		}
		if !isNull(replies[0]) {
			p.End(replies[0])
			return c.write(string(replies[0]), nil)
		}
		timer := time.NewTimer(left)
		if left == 0 {
			timer.Stop()
		}
		start := time.Now()
		select {
		case <-changed:
			timer.Stop()
			if left > 0 {
				left = max(left-time.Since(start), time.Millisecond)
			}
			continue
		case <-ctx.Done():
			timer.Stop()
			p.End(nil)
			return "", ctx.Err()
		case <-timer.C:
		case <-p.Unblock():
			timer.Stop()
		}
		o := p.Nil(context.Background(), replies[0])
		if !o.Again {
			return c.write(string(o.Reply), o.Handout)
		}
		left = o.Block
	}
}

// form is the transaction by which current workers reclaim.
func formOf(stream, group, consumer, minIdle, count, token string) [][]string {
	lock := "autoclaim:" + group + ":" + stream
	return [][]string{
		{"MULTI"},
		{"SET", lock, token, "NX", "PX", "60000"},
		{"XAUTOCLAIM", stream, group, consumer, minIdle, "0-0", "COUNT", count},
		{"EVALSHA", lockSHAs[scriptRelease], "1", lock, token},
		{"EXEC"},
	}
}

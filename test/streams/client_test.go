//go:build streams

package streams

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/internal/resp"
)

// patience bounds the wait for what must happen, however busy the machine.
const patience = 20 * time.Second

// client is a raw client whose methods end the test on errors. It belongs to the test's own
// goroutine; others use the embedded one.
type client struct {
	*redistest.Client
	t testing.TB
}

// connect opens a client connection that is closed when the test ends.
func connect(t testing.TB, addr string) *client {
	t.Helper()
	c, err := redistest.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &client{c, t}
}

// ask sends one command and returns the reply.
func (c *client) ask(args ...string) string {
	c.t.Helper()
	c.sends(args...)
	return c.reply()
}

// gets sends one command and fails the test on any other reply than want.
func (c *client) gets(want string, args ...string) {
	c.t.Helper()
	if got := c.ask(args...); got != want {
		c.t.Fatalf("%s: got %.300q, want %.300q", strings.Join(args, " "), got, want)
	}
}

// sends sends one command in one write.
func (c *client) sends(args ...string) {
	c.t.Helper()
	if err := c.SendCommand(args...); err != nil {
		c.t.Fatalf("send %.80q: %v", args, err)
	}
}

func (c *client) reply() string {
	c.t.Helper()
	got, err := c.ReadReply()
	if err != nil {
		c.t.Fatalf("read a reply: %v (got %.80q)", err, got)
	}
	return got
}

// all sends commands in one write and returns their replies.
func (c *client) all(commands ...[]string) []string {
	c.t.Helper()
	got, err := pipeline(c.Client, commands...)
	if err != nil {
		c.t.Fatal(err)
	}
	return got
}

// value sends one command and decodes the reply, which must not be an error.
func (c *client) value(args ...string) resp.Value {
	c.t.Helper()
	return decode(c.t, c.ask(args...))
}

func decode(t testing.TB, raw string) resp.Value {
	t.Helper()
	v, _, err := resp.Parse([]byte(raw))
	if err != nil || v.Kind == '-' {
		t.Fatalf("reply %.200q: %v", raw, err)
	}
	return v
}

// pending is one line of XPENDING's long form.
type pending struct {
	id, owner string
	idle      time.Duration
	count     int
}

// pendings lists what a group has pending in a stream.
func (c *client) pendings(stream, group string) (list []pending) {
	c.t.Helper()
	for _, line := range c.value("XPENDING", stream, group, "-", "+", "1000").Elems {
		p := pending{id: text(line.Elems[0]), owner: text(line.Elems[1])}
		var ms int64
		fmt.Sscan(text(line.Elems[2]), &ms)
		fmt.Sscan(text(line.Elems[3]), &p.count)
		p.idle = time.Duration(ms) * time.Millisecond
		list = append(list, p)
	}
	return list
}

func text(v resp.Value) string { return string(v.Text) }

// pipeline sends commands in one write and reads their replies.
func pipeline(c *redistest.Client, commands ...[]string) ([]string, error) {
	var b strings.Builder
	for _, args := range commands {
		b.WriteString(redistest.Command(args...))
	}
	if err := c.Send(b.String()); err != nil {
		return nil, err
	}
	var replies []string
	for range commands {
		r, err := c.ReadReply()
		if err != nil {
			return nil, err
		}
		replies = append(replies, r)
	}
	return replies, nil
}

// bulk renders a bulk string.
func bulk(s string) string {
	_, frame, _ := strings.Cut(redistest.Command(s), "\r\n")
	return frame
}

// entries renders the entries of one stream, each with the field f and the value v.
func entries(ids ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(ids))
	for _, id := range ids {
		b.WriteString("*2\r\n" + bulk(id) + "*2\r\n" + bulk("f") + bulk("v"))
	}
	return b.String()
}

// The replies to an XAUTOCLAIM that finds nothing, to a read that finds nothing, and what is left
// when all is acked.
const (
	nothingClaimed   = "*3\r\n$3\r\n0-0\r\n*0\r\n*0\r\n"
	nothingClaimed62 = "*2\r\n$3\r\n0-0\r\n*0\r\n" // before Redis 7
	nothingRead      = "*-1\r\n"
)

// reset leaves without goodbye: the peer gets RST, as after a crash.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// eventually polls until ok, and fails the test when that takes too long.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	within(t, patience, what, ok)
}

// within is eventually with another bound. It returns how long it took.
func within(t testing.TB, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); ; <-tick.C {
		if ok() {
			return time.Since(begin)
		}
		if time.Since(begin) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// state waits until the proxy knows a stream of a group as cold or hot. Their names must have no
// blanks in them.
func (c *client) state(stream, group, state string) {
	c.t.Helper()
	eventually(c.t, stream+" is "+state, func() bool { return c.knows(stream, group) == state })
}

// knows is the state in which PROXY STREAMS shows a stream of a group, empty if it is not there.
func (c *client) knows(stream, group string) string {
	c.t.Helper()
	for line := range strings.Lines(c.ask("PROXY", "STREAMS")) {
		if cells := strings.Fields(line); len(cells) > 5 && cells[4] == group && cells[5] == stream {
			return cells[0]
		}
	}
	return ""
}

// blocked waits until the server has n clients in a blocking command.
func (c *client) blocked(n int) {
	c.t.Helper()
	eventually(c.t, fmt.Sprint(n, " blocked clients at the server"), func() bool {
		return strings.Contains(c.ask("INFO", "clients"), fmt.Sprintf("\nblocked_clients:%d\r\n", n))
	})
}

// entry reads the reply to a read that has brought one entry of one stream, and returns its id.
func (c *client) entry(stream string) string {
	c.t.Helper()
	raw := c.reply()
	v := decode(c.t, raw)
	if len(v.Elems) != 1 || text(v.Elems[0].Elems[0]) != stream || len(v.Elems[0].Elems[1].Elems) != 1 {
		c.t.Fatalf("not one entry of %s: %.200q", stream, raw)
	}
	return text(v.Elems[0].Elems[1].Elems[0].Elems[0])
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

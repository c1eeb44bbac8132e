//go:build cases

package cases

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// The two errors by which a client learns what became of a command that got no reply.
const (
	unknownOutcome = "-ERR streamproxy: upstream connection lost; outcome unknown\r\n"
	notSent        = "-ERR streamproxy: upstream unavailable; command not sent\r\n"
)

// patience bounds the wait for what must happen, however busy the machine.
const patience = 15 * time.Second

// client is a raw client whose methods end the test on errors. It belongs to the test's own
// goroutine; others use the embedded one.
type client struct {
	*redistest.Client
	t testing.TB
}

// ask sends one command and returns the reply.
func (c *client) ask(args ...string) string {
	c.t.Helper()
	c.sends(redistest.Command(args...))
	return c.reply()
}

// gets sends one command and fails the test on any other reply than want.
func (c *client) gets(want string, args ...string) {
	c.t.Helper()
	if got := c.ask(args...); got != want {
		c.t.Fatalf("%s: got %.200q, want %.200q", strings.Join(args, " "), got, want)
	}
}

// sends writes raw bytes in one write.
func (c *client) sends(raw string) {
	c.t.Helper()
	if err := c.Send(raw); err != nil {
		c.t.Fatalf("send %.80q: %v", raw, err)
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

// replies reads as many replies as are wanted and compares them.
func (c *client) replies(want ...string) {
	c.t.Helper()
	var got []string
	for range want {
		got = append(got, c.reply())
	}
	if !slices.Equal(got, want) {
		c.t.Fatalf("got %.300q, want %.300q", got, want)
	}
}

// drops reads and forgets n bytes of replies; nothing may have been read ahead of them.
func (c *client) drops(n int) {
	c.t.Helper()
	_ = c.Conn.SetReadDeadline(time.Now().Add(max(patience, c.Timeout)))
	if got, err := io.CopyN(io.Discard, c.Conn, int64(n)); err != nil {
		c.t.Fatalf("%d bytes of %d came: %v", got, n, err)
	}
}

// ends fails the test unless the connection ends, with nothing more said.
func (c *client) ends() {
	c.t.Helper()
	got, err := c.ReadReply()
	if got != "" || !errors.Is(err, io.EOF) {
		c.t.Fatalf("want the end of the connection, got %.80q, %v", got, err)
	}
}

// silent fails the test if anything has been said that was not read yet. It asks for an echo, so
// that whatever came before it must have arrived.
func (c *client) silent() {
	c.t.Helper()
	c.gets(bulk("still there"), "ECHO", "still there")
	if n := c.Buffered(); n > 0 {
		c.t.Fatalf("%d bytes that nobody asked for", n)
	}
}

// bulk renders a bulk string.
func bulk(s string) string {
	_, frame, _ := strings.Cut(redistest.Command(s), "\r\n")
	return frame
}

// integer renders an integer.
func integer(n int) string { return ":" + strconv.Itoa(n) + "\r\n" }

// eventually polls until ok, and fails the test when that takes too long.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	within(t, patience, what, ok)
}

// within is eventually with another patience, for what takes its time by itself.
func within(t testing.TB, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// blockedClients waits until the server has n clients in a blocking command. It asks over a
// connection of its own, so that the proxy's are as the case left them.
func blockedClients(t testing.TB, watch *client, n string) {
	t.Helper()
	eventually(t, n+" blocked clients at the server", func() bool {
		return strings.Contains(watch.ask("INFO", "clients"), "\nblocked_clients:"+n+"\r\n")
	})
}

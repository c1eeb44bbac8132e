//go:build cases

package cases

import (
	"testing"

	"streamproxy/internal/redistest"
)

// Client-side caching in each of its forms: what a client has read and another changes is told to it,
// or to the client it named, and to nobody else.
func TestInvalidationsArrive(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	writer := f.client()
	told := func(key string) string { return ">2\r\n" + bulk("invalidate") + "*1\r\n" + bulk(key) }

	t.Run("by what was read", func(t *testing.T) {
		c := &client{f.client().Client, t}
		c.ask("HELLO", "3")
		c.gets("+OK\r\n", "CLIENT", "TRACKING", "ON")
		c.gets("_\r\n", "GET", "a")
		writer.gets("+OK\r\n", "SET", "a", "1")
		c.replies(told("a"))
		writer.gets("+OK\r\n", "SET", "a", "2") // not read since: nothing to tell
		c.silent()
		c.gets("+OK\r\n", "CLIENT", "TRACKING", "OFF")
		c.silent()
	})
	t.Run("by prefix", func(t *testing.T) {
		c := &client{f.client().Client, t}
		c.ask("HELLO", "3")
		c.gets("+OK\r\n", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "p:")
		writer.gets("+OK\r\n", "SET", "other", "1")
		writer.gets("+OK\r\n", "SET", "p:1", "1")
		c.replies(told("p:1"))
		c.silent()
	})
	t.Run("by opt-in", func(t *testing.T) {
		c := &client{f.client().Client, t}
		c.ask("HELLO", "3")
		c.gets("+OK\r\n", "CLIENT", "TRACKING", "ON", "OPTIN")
		c.gets("_\r\n", "GET", "b")
		c.sends(pipeline([]string{"CLIENT", "CACHING", "YES"}, []string{"GET", "c"}))
		c.replies("+OK\r\n", "_\r\n")
		writer.gets("+OK\r\n", "MSET", "b", "1", "c", "1")
		c.replies(told("c"))
		c.silent()
	})
	t.Run("redirected", func(t *testing.T) {
		ear, c := &client{f.client().Client, t}, &client{f.client().Client, t}
		id := number(t, ear.ask("CLIENT", "ID"))
		ear.subscribes("SUBSCRIBE", "__redis__:invalidate")
		c.gets("+OK\r\n", "CLIENT", "TRACKING", "ON", "REDIRECT", id)
		c.gets("$-1\r\n", "GET", "d")
		writer.gets("+OK\r\n", "SET", "d", "1")
		ear.replies("*3\r\n" + bulk("message") + bulk("__redis__:invalidate") + "*1\r\n" + bulk("d"))
		c.silent()
	})
	// A session is given a connection of its own when it subscribes, and that is what is named.
	t.Run("redirected before it listens", func(t *testing.T) {
		ear, c := &client{f.client().Client, t}, &client{f.client().Client, t}
		id := number(t, ear.ask("CLIENT", "ID"))
		f.client().gets("-ERR The client ID you want redirect to does not exist\r\n", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "e", "REDIRECT", id)
		ear.subscribes("SUBSCRIBE", "__redis__:invalidate")
		c.gets("+OK\r\n", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "e", "REDIRECT", id)
		writer.gets("+OK\r\n", "SET", "e", "1")
		ear.replies("*3\r\n" + bulk("message") + bulk("__redis__:invalidate") + "*1\r\n" + bulk("e"))
		c.silent()
	})
	writer.silent()
}

// subscribes subscribes to one channel.
func (c *client) subscribes(args ...string) {
	c.t.Helper()
	c.sends(redistest.Command(args...))
	c.replies("*3\r\n" + bulk("subscribe") + bulk(args[1]) + ":1\r\n")
}

//go:build cases

package cases

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// blocking are the commands that block, each as it waits for ever.
var blocking = []string{
	"BLPOP nothing 0", "BRPOP nothing 0", "BRPOPLPUSH nothing to 0", "BLMOVE nothing to LEFT RIGHT 0", "BLMPOP 0 1 nothing LEFT",
	"BZPOPMIN nothing 0", "BZPOPMAX nothing 0", "BZMPOP 0 1 nothing MIN",
	"XREAD BLOCK 0 STREAMS s $", "XREADGROUP GROUP g c BLOCK 0 STREAMS s >",
	"WAIT 2 0", "WAITAOF 0 2 0",
}

// A drain answers what blocks as the server itself does when the time is over: with its own kind of
// null in the version of the client, or with a number, whatever the client has done before.
func TestDrainAnswersAsATimeoutDoes(t *testing.T) {
	everyServer(t, drainAnswersAsATimeoutDoes)
	if oldest := os.Getenv("REDIS_62_SERVER"); oldest != "" { // there is none for some machines
		t.Run("redis-oldest", func(t *testing.T) {
			t.Setenv("REDIS_SERVER", oldest)
			drainAnswersAsATimeoutDoes(t)
		})
	}
}

func drainAnswersAsATimeoutDoes(t *testing.T) {
	s := redistest.Start(t) // without a replica, that would answer when it likes
	watch := connect(t, s.Addr())
	watch.gets("+OK\r\n", "XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
	before := map[string][][]string{
		"nothing":            nil,
		"a write":            {{"SET", "k", "v"}},
		"WATCH":              {{"WATCH", "k"}},
		"a write, and WATCH": {{"SET", "k", "v"}, {"WATCH", "k"}},
	}
	f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.DrainMin, c.DrainIdle = 0, time.Millisecond })
	eventually(t, "the server is known", func() bool { return f.Stats().UpstreamUp })
	type waiting struct {
		*client
		what, want string
	}
	var all []waiting
	for _, line := range known(watch, blocking) {
		for _, version := range []string{"2", "3"} {
			for name, first := range before {
				want := unblocked(connect(t, s.Addr()), watch, version, first, strings.Fields(line), len(all))
				c := f.client()
				c.blocks(version, first, strings.Fields(line))
				all = append(all, waiting{c, fmt.Sprintf("%s in version %s after %s", line, version, name), want})
				blockedClients(t, watch, fmt.Sprint(len(all)))
			}
		}
	}
	ended := make(chan bool)
	go func() { ended <- f.Shutdown(context.Background()) }()
	for _, w := range all {
		if got := w.reply(); got != w.want {
			t.Errorf("%s: %q, want %q", w.what, got, w.want)
		}
		w.ends()
	}
	if clean := <-ended; !clean {
		t.Error("the drain was not clean")
	}
}

// known leaves out the lines whose commands the server does not have.
func known(c *client, lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		name, _, _ := strings.Cut(line, " ")
		return !strings.Contains(c.ask("COMMAND", "INFO", name), strings.ToLower(name))
	})
}

// blocks sends a command that blocks, after some that do not.
func (c *client) blocks(version string, first [][]string, command []string) {
	c.t.Helper()
	c.ask("HELLO", version)
	for _, args := range first {
		c.gets("+OK\r\n", args...)
	}
	c.sends(redistest.Command(command...))
}

// unblocked is the answer to a command that is unblocked as by its timeout while others wait.
func unblocked(c, watch *client, version string, first [][]string, command []string, others int) string {
	c.t.Helper()
	id := strings.Trim(c.ask("CLIENT", "ID"), ":\r\n")
	c.blocks(version, first, command)
	blockedClients(c.t, watch, fmt.Sprint(others+1))
	watch.gets(":1\r\n", "CLIENT", "UNBLOCK", id)
	return c.reply()
}

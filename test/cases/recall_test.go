//go:build cases

package cases

import (
	"testing"

	"streamproxy/internal/redistest"
)

// A client leaves under a blocking command while writes are paused: the command is postponed, not
// blocked, and a server before 7.2 dies of being asked to unblock it. It must live on, and serve.
// WAIT is postponed while all commands are.
func TestLeavingUnderAPause(t *testing.T) {
	for _, tt := range []struct {
		mode    string
		command []string
	}{
		{"WRITE", []string{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"}},
		{"WRITE", []string{"BLPOP", "nothing", "0"}},
		{"WRITE", []string{"WAIT", "1", "0"}},
		{"ALL", []string{"WAIT", "1", "0"}},
	} {
		t.Run(tt.command[0]+" "+tt.mode, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			f := startProxy(t, s.Addr())
			watch := connect(t, s.Addr())
			watch.gets("+OK\r\n", "XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
			eventually(t, "the server is known", func() bool { return f.Stats().UpstreamUp })
			c := f.client()
			c.gets("+PONG\r\n", "PING")
			watch.gets("+OK\r\n", "CLIENT", "PAUSE", "1500", tt.mode)
			c.sends(redistest.Command(tt.command...))
			if tt.mode == "WRITE" { // else nobody could tell
				eventually(t, "the command waits", func() bool { return s.Info("clients", "blocked_clients") == "1" })
			}
			_ = c.Close()
			eventually(t, "the client is gone", func() bool { return f.Stats().Clients == 0 })
			other := f.client()
			other.gets("+OK\r\n", "SET", "k", "v") // after the pause
			other.gets(bulk("v"), "GET", "k")
			watch.gets("+PONG\r\n", "PING")
		})
	}
}

// A browser's request is hung up on, and what follows it is not executed.
func TestWebRequestIsHungUpOn(t *testing.T) {
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	c := f.client()
	c.sends("POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET pwned 1\r\n")
	c.ends()
	f.client().gets("$-1\r\n", "GET", "pwned")
}

package proxy

import (
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// echoes has f answer ECHO, and what gives a client a connection of its own.
func echoes(f *fakeServer) {
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		switch {
		case args[0] == "ECHO":
			return bulkReply(args[1]), true
		case args[0] == "WATCH", args[0] == "CLIENT" && args[1] == "TRACKING":
			return "+OK\r\n", true
		}
		return "", false
	})
}

// A client that sends all of a pipeline before it reads anything is answered, whatever carries it.
func TestPipelinesSentWhole(t *testing.T) {
	const total = 24 << 20 // more than the sockets between take
	for _, test := range []struct {
		name  string
		size  int
		begin []string // a command before them
	}{
		{"small replies", 400, nil},
		{"replies of 10 KB", 10 << 10, nil},
		{"replies of a MiB", 1 << 20, nil},
		{"behind WATCH", 10 << 10, []string{"WATCH", "k"}},
		{"on a connection of its own", 10 << 10, []string{"CLIENT", "TRACKING", "on"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := startFake(t)
			echoes(f)
			p := startProxy(t, f, nil)
			c := p.client()
			if test.begin != nil {
				expect(t, c, "+OK\r\n", test.begin...)
			}
			sendWhole(t, c, total, test.size)
			until(t, "nothing to be kept", func() bool { return p.inBuffers() == 0 })
		})
	}
	t.Run("over TLS", func(t *testing.T) {
		p := startSecure(t, nil)
		sendWhole(t, p.client(), total, 10<<10)
	})
}

// sendWhole sends total bytes of ECHOs before it reads the replies.
func sendWhole(t *testing.T, c *redistest.Client, total, size int) {
	t.Helper()
	word := strings.Repeat("w", size)
	n := total / size
	if err := c.Send(strings.Repeat(redistest.Command("ECHO", word), n)); err != nil {
		t.Fatalf("sending: %v", err)
	}
	for i := range n {
		if got, err := c.ReadReply(); err != nil || got != bulkReply(word) {
			t.Fatalf("reply %d: %.40q, %v", i, got, err)
		}
	}
}

// Nobody is given more than half of the memory limit for that: then a client that sends on
// stands still until it reads.
func TestInsistingEndsAtHalfTheMemory(t *testing.T) {
	const limit, size = 16 << 20, 10 << 10
	f := startFake(t)
	echoes(f)
	p := startProxy(t, f, func(c *Config) { c.MemoryLimit = limit })
	c := p.client()
	word := strings.Repeat("w", size)
	const n = 4 * limit / size
	sent := make(chan error, 1)
	go func() { sent <- c.Send(strings.Repeat(redistest.Command("ECHO", word), n)) }()
	until(t, "half of the memory to be used", func() bool { return p.halfFull() })
	s := p.sessions.all()[0]
	until(t, "the client to stand still", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.insists && s.waiters > 0 && s.unsent() > s.allowance(largeBacklog)
	})
	for i := range n {
		if got, err := c.ReadReply(); err != nil || got != bulkReply(word) {
			t.Fatalf("reply %d: %.40q, %v", i, got, err)
		}
		if held := p.inBuffers(); held > limit*3/4 {
			t.Fatalf("%d bytes are held", held)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	until(t, "it to insist no more", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return !s.insists })
}

// Who has no more to be read is not given more: it reads, or it does not.
func TestWhoOnlyReadsSlowlyDoesNotInsist(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	s, client := bare(t, p)
	g := book(s, &segment{}, 1)
	g.Reply([]byte(bulkReply(strings.Repeat("x", 4<<20))), 1, 0)
	g.Flush()
	s.mu.Lock()
	s.lookWhetherInsists()
	if s.insists {
		t.Error("a client that has sent nothing insists")
	}
	s.mu.Unlock()
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	until(t, "it to insist", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lookWhetherInsists()
		return s.insists
	})
}

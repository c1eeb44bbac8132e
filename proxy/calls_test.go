package proxy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"streamproxy/internal/resp"
	"streamproxy/reclaim"
)

// What reclaim asks for a user must not keep that user's connections wanted for ever.
func TestCallsLeaveTheirHub(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	for range 3 {
		replies, err := calls{p.Proxy}.Do(t.Context(), reclaim.Identity{DB: 3, Proto: 2}, []byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), 1)
		if err != nil || len(replies) != 1 || string(replies[0]) != bulkReply("k") {
			t.Fatalf("got %q, %v", replies, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, h := range p.hubs {
		if key.DB == 3 && h.users != 0 {
			t.Errorf("%d users are left", h.users)
		}
	}
}

// Of a long reply no more is kept than is wanted, and the next one begins where it begins.
func TestCallsKeepTheBeginningOfLongReplies(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	key := strings.Repeat("k", 1<<20)
	commands := resp.AppendCommand(resp.AppendCommand(resp.AppendCommand(nil, "GET", "k"), "GET", key), "GET", "l")
	replies, err := calls{p.Proxy}.DoUpTo(t.Context(), reclaim.Identity{Proto: 2}, commands, 3, 1000)
	if err != nil || len(replies) != 3 {
		t.Fatalf("%d replies, %v", len(replies), err)
	}
	for i, want := range []string{bulkReply("k"), bulkReply(key)[:1000], bulkReply("l")} {
		if string(replies[i]) != want {
			t.Errorf("%d: %d bytes, want %d", i, len(replies[i]), len(want))
		}
	}
}

// What is asked for a client alone that has gone is not sent, nor waited for; what others want too is.
func TestCallsForAClientThatHasGone(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, withoutSpares)
	expect(t, p.client(), bulkReply("k"), "GET", "k")
	until(t, "the server", p.health.up.Load)
	h := p.hubOf(p.defaultKey())
	defer p.leaveHub(h)
	for c := h.spares.pop(); c != nil; c = h.spares.pop() {
		c.Close()
	}
	f.seenSince()
	client, leave := context.WithCancel(t.Context())
	ask := func(ctx context.Context) error {
		_, err := calls{p.Proxy}.DoUpTo(ctx, reclaim.Identity{Proto: 2}, resp.AppendCommand(nil, "GET", "x"), 1, 1000)
		return err
	}
	f.setMute(true) // nobody is let in
	gone := make(chan error)
	go func() { gone <- ask(reclaim.Wanted(t.Context(), client)) }()
	until(t, "it to wait for a connection", func() bool { h.spares.mu.Lock(); defer h.spares.mu.Unlock(); return len(h.spares.waiting) == 1 })
	leave()
	if err := <-gone; !errors.Is(err, reclaim.ErrNotSent) {
		t.Errorf("while it waits: %v", err)
	}
	f.setMute(false)
	f.cut("private") // its greeting was swallowed
	if err := ask(reclaim.Wanted(t.Context(), client)); !errors.Is(err, reclaim.ErrNotSent) {
		t.Errorf("before it waits: %v", err)
	}
	if seen := f.seenSince(); len(seen) != 0 {
		t.Errorf("sent: %q", seen)
	}
	if err := ask(t.Context()); err != nil {
		t.Errorf("for others: %v", err)
	}
}

package proxy

import (
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

package proxy

import (
	"testing"

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

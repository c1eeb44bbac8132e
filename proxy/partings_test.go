package proxy

import (
	"errors"
	"io"
	"testing"

	"streamproxy/internal/redistest"
)

// A client that ends its connection in the same moment as it sends its last command gets
// the reply and the end, also where the poller has told of both at once: on Linux nothing
// else would come that wakes the reader.
func TestEndBehindTheLastBytes(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	for round := range 300 {
		c := p.client()
		if err := c.Send(redistest.Command("GET", "k")); err != nil {
			t.Fatal(err)
		}
		if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := c.ReadReply(); err != nil || got != bulkReply("k") {
			t.Fatalf("round %d: got %q, %v", round, got, err)
		}
		if got, err := c.ReadReply(); got != "" || !errors.Is(err, io.EOF) {
			t.Fatalf("round %d: behind the reply: %q, %v", round, got, err)
		}
		_ = c.Close()
	}
	until(t, "every session has ended", func() bool { return p.Stats().Clients == 0 })
}

package proxy

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/redcon"

	"streamproxy/internal/redistest"
	"streamproxy/reclaim"
)

// counted makes a configuration count the limits that clients meet.
func counted(c *Config) *[numLimits]atomic.Int64 {
	met := new([numLimits]atomic.Int64)
	c.Events.Limited = func(l Limit) { met[l].Add(1) }
	return met
}

// A transaction over the limit is told so, and may be tried again.
func TestTooManyTransactions(t *testing.T) {
	f := startFake(t)
	var met *[numLimits]atomic.Int64
	p := startProxy(t, f, func(c *Config) {
		c.PrivateMax, c.UpstreamWait = 1, 50*time.Millisecond
		met = counted(c)
	})
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		return "+OK\r\n", args[0] == "WATCH" || args[0] == "UNWATCH"
	})
	first, second := p.client(), p.client()
	expect(t, first, "+OK\r\n", "WATCH", "k")
	expect(t, second, string(redcon.AppendError(nil, textTxLimit)), "WATCH", "k")
	if n := met[LimitTransactions].Load(); n != 1 {
		t.Errorf("counted %d", n)
	}
	expect(t, first, "+OK\r\n", "UNWATCH")
	expect(t, second, "+OK\r\n", "WATCH", "k")
}

// A transaction that has lost its connection gives up its place at once, whatever its
// client does about it: that one's next transaction must find it free, and does not count
// as one more of them.
func TestLostTransactionKeepsNoPlace(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.PrivateMax = 1 })
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] == "MULTI" {
			c.Close()
		}
		return "+OK\r\n", args[0] == "WATCH" || args[0] == "MULTI"
	})
	for range 3 {
		c := p.client()
		expect(t, c, "+OK\r\n", "WATCH", "k")
		expect(t, c, string(replyUnknown), "MULTI")
		expectEnd(t, c)
		if n := len(p.txSlots); n != 0 {
			t.Fatalf("%d places are taken when the client hears of the end", n)
		}
	}
	if n := p.txPeak.recent(); n != 1 {
		t.Errorf("%d transactions at a time", n)
	}
}

// Commands that are never ended count towards the memory limit like replies that are
// never taken, and whoever is refused for it hears why.
func TestUnendedCommandsCountAsMemory(t *testing.T) {
	const limit, clients, part = 1 << 20, 40, 60 << 10
	f := startFake(t)
	var met *[numLimits]atomic.Int64
	p := startProxy(t, f, func(c *Config) {
		c.MemoryLimit = limit
		met = counted(c)
	})
	for range clients {
		c := p.client()
		if err := c.Send("*2\r\n$4\r\nECHO\r\n$62000\r\n" + strings.Repeat("x", part)); err != nil {
			t.Fatal(err)
		}
		want := string(redcon.AppendError(nil, textMemory))
		t.Cleanup(func() {
			if got, err := c.ReadReply(); err == nil && got != want {
				t.Errorf("a client was told %q", got)
			}
		})
	}
	until(t, "clients to be refused", func() bool {
		return met[LimitMemory].Load() >= clients-limit/part && p.Stats().BufferedBytes <= limit
	})
	expect(t, p.client(), "+PONG\r\n", "PING")
	p.Close()
	if left := p.buffered.Load(); left != 0 {
		t.Errorf("%d bytes are still counted", left)
	}
}

// A client that is closed for saying nothing is counted.
func TestIdleClientsAreCounted(t *testing.T) {
	f := startFake(t)
	var met *[numLimits]atomic.Int64
	p := startProxy(t, f, func(c *Config) {
		c.ClientIdleTimeout = 20 * time.Millisecond
		met = counted(c)
	})
	expectEnd(t, p.client())
	if n := met[LimitIdle].Load(); n != 1 {
		t.Errorf("counted %d", n)
	}
}

// Over the limit of lanes reclaim asks over private connections, as clients do.
func TestCallsKeepTheLimitOfLanes(t *testing.T) {
	f := startFake(t)
	var met *[numLimits]atomic.Int64
	p := startProxy(t, f, func(c *Config) {
		c.MaxLanes = 1
		met = counted(c)
	})
	expect(t, p.client(), bulkReply("k"), "GET", "k")
	for range 3 {
		replies, err := calls{p.Proxy}.Do(t.Context(), reclaim.Identity{DB: 3, Proto: 2}, []byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), 1)
		if err != nil || len(replies) != 1 || string(replies[0]) != bulkReply("k") {
			t.Fatalf("got %q, %v", replies, err)
		}
		if n := p.Stats().Lanes; n != 1 {
			t.Fatalf("%d lanes", n)
		}
	}
	other := p.client()
	expect(t, other, "+OK\r\n", "SELECT", "4")
	expect(t, other, bulkReply("k"), "GET", "k")
	if n := met[LimitLanes].Load(); n == 0 {
		t.Error("a client that found no lane was not counted")
	}
}

// A client that never reads replies is not read from for ever: what is unanswered is
// bounded, but for the chunk that was under way.
func TestUnansweredCommandsAreBounded(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	c := p.client()
	expect(t, c, bulkReply("k"), "GET", "k")
	f.setMute(true)
	one := redistest.Command("GET", "k")
	go func() { _ = c.Send(strings.Repeat(one, 40*maxOutstanding)) }() // ends with the connection
	until(t, "the limit", func() bool { return p.Stats().InFlight >= laneTurn/len(one)/2 })
	for range 20 {
		if n := p.Stats().InFlight; n > maxOutstanding+chunkSize/len(one)+1 {
			t.Fatalf("%d commands are unanswered", n)
		}
		time.Sleep(time.Millisecond)
	}
	f.setMute(false)
	c.Close()
}

// lineWriter passes on each write.
type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}

// However often clients meet a limit, the log has a line in a while.
func TestMetLimitsAreSampled(t *testing.T) {
	f := startFake(t)
	lines := make(chan string, 1000)
	p := startProxy(t, f, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(lineWriter(lines), nil)) })
	for range 1000 {
		p.met(LimitStalled, "stalled")
	}
	n := 0
	for len(lines) > 0 {
		n += strings.Count(<-lines, "limit=stalled")
	}
	if n != 1 {
		t.Errorf("%d lines", n)
	}
}

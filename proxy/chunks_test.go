package proxy

import (
	"net"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// Chunks are large until readers hold as much as they may, and then small; what is put
// back counts no more.
func TestChunks(t *testing.T) {
	for limit, want := range map[int64]int64{0: maxInHand, 1 << 20: 64 << 10, 160 << 20: 10 << 20, 1 << 40: maxInHand} {
		p := &Proxy{cfg: Config{MemoryLimit: limit}}
		var taken []*chunk
		large := 0
		for range 1000 {
			c := p.takeChunk()
			if len(c.b) == chunkSize {
				large++
			} else if len(c.b) != smallChunk {
				t.Fatalf("a chunk of %d bytes", len(c.b))
			}
			taken = append(taken, c)
		}
		if large != int(want/chunkSize) {
			t.Errorf("under a limit of %d: %d large chunks, want %d", limit, large, want/chunkSize)
		}
		if got := p.inBuffers(); got != int64(large*chunkSize+(1000-large)*smallChunk) {
			t.Errorf("%d bytes are counted", got)
		}
		for _, c := range taken {
			p.putChunk(c)
		}
		if got := p.inBuffers(); got != 0 {
			t.Errorf("%d bytes are counted of what was put back", got)
		}
	}
}

// What clients hold that wait for an upstream, because it takes nothing or because it is
// down, is counted and bounded; others are served meanwhile.
func TestWaitingReadersAreBounded(t *testing.T) {
	const clients, limit = 300, 16 << 20
	t.Run("takes nothing", func(t *testing.T) {
		f := startFake(t)
		p := startProxy(t, f, func(c *Config) { c.MemoryLimit = limit })
		other := p.client()
		expect(t, other, "+OK\r\n", "SELECT", "3")
		expect(t, other, bulkReply("a"), "GET", "a")
		f.script(func(c *fakeConn, args []string) (string, bool) {
			if args[0] == "GET" && args[1] == "stop" {
				c.deaf = true
				c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
			}
			return "", false
		})
		expect(t, p.client(), bulkReply("stop"), "GET", "stop")
		const many = 3 * clients // a turn of each, which is more than the connection takes
		all := p.crowd(many, strings.Repeat(redistest.Command("GET", strings.Repeat("x", 1000)), 15))
		p.expectBound(t, many)
		for range 100 {
			expect(t, other, bulkReply("a"), "GET", "a")
		}
		f.hear()
		all.leave(t, p, 1)
	})
	t.Run("is down", func(t *testing.T) {
		f := startFake(t)
		p := startProxy(t, f, func(c *Config) { c.MemoryLimit, c.UpstreamWait = limit, patience })
		until(t, "the upstream", func() bool { return p.Stats().UpstreamUp })
		f.leave(t, p)
		all := p.crowd(clients, redistest.Command("GET", "a"))
		p.expectBound(t, clients)
		p.hangUp()
		all.leave(t, p, 0)
	})
}

// expectBound waits until most of so many clients wait, and looks at what they hold.
func (p *testProxy) expectBound(t *testing.T, clients int64) {
	t.Helper()
	most := p.maxInHand() + clients*(smallChunk+bufferSize)
	until(t, "clients that wait", func() bool {
		held := p.Stats().BufferedBytes
		if held > most {
			t.Fatalf("%d bytes are held, more than %d", held, most)
		}
		return held >= p.maxInHand()+clients*smallChunk/2
	})
}

// crowd is many clients that send the same.
type crowd []*redistest.Client

func (p *testProxy) crowd(n int, raw string) (all crowd) {
	for range n {
		c := p.client()
		all = append(all, c)
		go func() { _ = c.Send(raw) }() // ends with the connection
	}
	return all
}

// leave ends the clients, and expects nothing to be held when none but so many are left.
func (all crowd) leave(t *testing.T, p *testProxy, others int) {
	t.Helper()
	for _, c := range all {
		c.Close()
	}
	until(t, "the end of all", func() bool { return p.sessions.len() <= others+1 && p.Stats().BufferedBytes == 0 })
}

// A client that has sent much, and the beginning of a command, costs no more than one
// that has sent only that.
func TestRestIsHeldInWhatFits(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	c := p.client()
	const n = 1000
	get := redistest.Command("GET", strings.Repeat("x", 100))
	for cut := 1; cut < len(get); cut += 20 {
		go func() { _ = c.Send(strings.Repeat(get, n) + get[:cut]) }() // ends with the connection
		for range n {
			expectReply(t, c, bulkReply(strings.Repeat("x", 100)))
		}
		until(t, "the rest to be held", func() bool { return p.Stats().BufferedBytes == bufferSize })
		if err := c.Send(get[cut:]); err != nil {
			t.Fatal(err)
		}
		expectReply(t, c, bulkReply(strings.Repeat("x", 100)))
		until(t, "nothing to be held", func() bool { return p.Stats().BufferedBytes == 0 })
	}
}

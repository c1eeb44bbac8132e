//go:build cases

package cases

import (
	"net"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// Buffers that never shrink: what a burst needed returns to the system soon after it, with all of
// its clients still there. Replies that nobody reads for a while, long commands, long lines.
func TestCase32MemoryReturnsAfterABurst(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := startProcess(t, s.Addr())
	const clients, rounds, size = 32, 16, 500_000
	crowd := make([]*client, clients)
	for i := range crowd {
		crowd[i] = p.client()
		_ = crowd[i].Conn.(*net.TCPConn).SetReadBuffer(64 << 10) // or the kernel would hold it all
		crowd[i].gets("+PONG\r\n", "PING")
	}
	value := strings.Repeat("v", size)
	s.Do("SET", "k", value)
	before := p.resident()
	for _, c := range crowd {
		c.sends(strings.Repeat(redistest.Command("GET", "k"), rounds))
	}
	peak := before
	eventually(t, "the replies are held here", func() bool {
		peak = max(peak, p.resident())
		return peak > before+clients*rounds*size/4
	})
	long := redistest.Command("ECHO", value[:60_000])
	for _, c := range crowd {
		c.drops(rounds * len(bulk(value)))
		c.sends(strings.Repeat(long, 10) + "ECHO " + value[:60_000] + "\r\n")
		c.drops(11 * len(bulk(value[:60_000])))
		peak = max(peak, p.resident())
	}
	start, after := time.Now(), int64(0)
	for after = p.resident(); after > 2*before && time.Since(start) < 2*patience; after = p.resident() {
		<-time.After(100 * time.Millisecond)
	}
	t.Logf("resident: %d KiB before, %d at most, %d after %v", before>>10, peak>>10, after>>10, time.Since(start))
	if after > 2*before {
		t.Errorf("%v after the burst %d KiB are resident, %d before it", time.Since(start), after>>10, before>>10)
	}
	for _, c := range crowd {
		c.gets("+PONG\r\n", "PING")
	}
}

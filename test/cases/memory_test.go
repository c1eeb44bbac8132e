//go:build cases

package cases

import (
	"fmt"
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
	const clients, rounds, size = 64, 10, 500_000
	crowd := make([]*client, clients)
	for i := range crowd {
		crowd[i] = p.client()
		crowd[i].Timeout = time.Minute
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
	within(t, time.Minute, "replies are held here", func() bool {
		peak = max(peak, p.resident())
		return peak > 3*before
	})
	long := redistest.Command("ECHO", value[:60_000])
	for _, c := range crowd {
		c.drops(rounds * len(bulk(value)))
		c.sends(strings.Repeat(long, 10) + "ECHO " + value[:60_000] + "\r\n")
		c.drops(11 * len(bulk(value[:60_000])))
		peak = max(peak, p.resident())
	}
	start, after := time.Now(), int64(0)
	defer func() {
		t.Logf("resident: %d KiB before, %d at most, %d after %v", before>>10, peak>>10, after>>10, time.Since(start))
	}()
	within(t, 2*time.Minute, fmt.Sprintf("no more than twice the %d KiB of before are resident", before>>10), func() bool {
		after = p.resident()
		return after <= 2*before
	})
	for _, c := range crowd {
		c.gets("+PONG\r\n", "PING")
	}
}

//go:build cases

package cases

import (
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// Overload, and then relief: after minutes of it new clients were not served any more. More clients
// than may connect, all of them sending without reading or coming and going, while the server
// stalls now and then; when they have gone, as many as may connect are served at once.
func TestCase38OverloadThenRelief(t *testing.T) {
	t.Parallel()
	const allowed = 40
	d := 2 * time.Second
	if long() {
		d = 3 * time.Minute
	}
	s := redistest.Start(t)
	link := startLink(t, s.Addr())
	f := startProxy(t, link.Addr(), timeout(2*time.Second), func(c *proxy.Config) {
		c.MaxClients, c.ClientBufferLimit, c.MemoryLimit = allowed, 1<<20, 16<<20
	})
	f.client().gets("+OK\r\n", "SET", "k", strings.Repeat("v", 10_000))
	over := make(chan struct{})
	var crowd sync.WaitGroup
	for i := range 2 * allowed {
		crowd.Go(func() { besiege(f, i%2 == 0, over) })
	}
	for start := time.Now(); time.Since(start) < d; {
		link.Stall(netlab.ToClient)
		<-time.After(d / 10)
		link.Resume(netlab.ToClient)
		<-time.After(d / 10)
	}
	close(over)
	crowd.Wait()
	within(t, time.Minute, "the crowd has gone", func() bool { return f.Stats().Clients == 1 })
	for range allowed - 1 {
		within(t, time.Minute, "a new client is served", func() bool {
			c, err := redistest.Dial(f.tcp)
			if err != nil {
				return false
			}
			t.Cleanup(func() { _ = c.Close() })
			got, err := c.Do("STRLEN", "k")
			return err == nil && got == ":10000\r\n"
		})
	}
	eventually(t, "nothing is kept for anybody", func() bool { return f.Stats().BufferedBytes == 0 })
}

// besiege connects again and again until over: and sends without reading, or asks and leaves.
func besiege(f *front, floods bool, over <-chan struct{}) {
	request := strings.Repeat(redistest.Command("GET", "k"), 100)
	for {
		select {
		case <-over:
			return
		default:
		}
		c, err := redistest.Dial(f.tcp)
		if err != nil {
			continue
		}
		c.Timeout = 50 * time.Millisecond
		for floods && c.Send(request) == nil {
			continue
		}
		_, _ = c.Do("GET", "k") // refused, late, or answered
		reset(c.Conn)
	}
}

// The sidecar is told to stop together with its application, which goes on for a while: to issue
// commands, over the connections that it has and over new ones. All of it is served, and when the
// application has stopped the sidecar ends as if nothing had been.
func TestCase43ApplicationOutlivesTheSignal(t *testing.T) {
	t.Parallel()
	going := 2 * time.Second
	if long() {
		going = 20 * time.Second
	}
	s := redistest.Start(t)
	// The idle time is that much longer than the application's pauses for machines that are busy.
	p := startProcess(t, s.Addr(), "--drain-idle=4s", "--drain-timeout=2m")
	old := p.client()
	old.gets(":1\r\n", "INCR", "n")
	p.Signal(syscall.SIGTERM)
	n := 1
	for start := time.Now(); time.Since(start) < going; n += 2 {
		if got := old.ask("INCR", "n"); got != integer(n+1) {
			t.Fatalf("command %d after %v: %q", n, time.Since(start), got)
		}
		c, err := redistest.Dial(p.Addr)
		if err != nil {
			t.Fatalf("a new connection after %v: %v", time.Since(start), err)
		}
		if got, err := c.Do("INCR", "n"); err != nil || got != integer(n+2) {
			t.Fatalf("over a new connection after %v: %q, %v", time.Since(start), got, err)
		}
		_ = c.Close()
		<-time.After(20 * time.Millisecond)
	}
	if code := p.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := s.Do("GET", "n"); got != bulk(strconv.Itoa(n)) {
		t.Errorf("the server counted %q, the application %d", got, n)
	}
}

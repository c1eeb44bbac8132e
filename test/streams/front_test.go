//go:build streams

package streams

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
	"streamproxy/proxy"
)

// The times of these tests: the shortest that reclaim allows.
const (
	minIdle  = 2 * time.Second
	interval = time.Second
	// slack is what a busy machine may add to a bound.
	slack = 4 * time.Second
)

// minIdleMillis is minIdle as an argument.
const minIdleMillis = "2000"

// bound is within which time the entries of a dead worker must be at another whose reads have that
// BLOCK, 0 being for ever and less than 0 none: they have to become idle, two rounds may pass, the
// read has to return or is called back.
func bound(block time.Duration) time.Duration {
	if block == 0 || block > interval {
		block = interval
	}
	return minIdle + 2*interval + max(block, 0) + time.Second
}

// front is a proxy that runs in the test's process.
type front struct {
	*proxy.Proxy
	t    testing.TB
	addr string
	tally
}

// tally counts what reclaim has done.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[string]int)
	}
	c.counts[what] += n
}

// count is how often something has happened: "local NAME", "forwarded REASON", or an action on
// entries.
func (c *tally) count(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[what]
}

// startProxy runs a proxy in front of a server, given as host:port, and closes it when the test
// ends. What it logs is shown if the test has failed.
func startProxy(t testing.TB, addr string, change ...func(*proxy.Config)) *front {
	t.Helper()
	target, err := upstream.Parse("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{t: t}
	log := &logBuffer{}
	cfg := proxy.DefaultConfig()
	cfg.Upstream = target
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	cfg.Reclaim.Logger = cfg.Logger
	cfg.Reclaim.Interval = interval
	cfg.Reclaim.Events.Local = func(command string) { f.add("local "+command, 1) }
	cfg.Reclaim.Events.Forwarded = func(reason string) { f.add("forwarded "+reason, 1) }
	cfg.Reclaim.Events.Entries = func(action, _, _ string, n int) { f.add(action, n) }
	for _, c := range change {
		c(&cfg)
	}
	if f.Proxy, err = proxy.New(cfg); err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		f.Close()
		serving.Wait()
		if t.Failed() {
			t.Logf("the proxy's log:\n%s", log.String())
		}
	})
	l, err := proxy.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	serving.Go(func() {
		if err := f.Serve(l); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return f
}

// client connects through the proxy.
func (f *front) client() *client {
	f.t.Helper()
	return connect(f.t, f.addr)
}

// logBuffer collects log lines of any goroutine.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// direct connects to the server itself.
func direct(t testing.TB, s *redistest.Server) *client { return &client{s.Client(), t} }

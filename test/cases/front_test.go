//go:build cases

package cases

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
	"streamproxy/proxy"
	"streamproxy/reclaim"
)

// front is a running proxy with a TCP address and a unix socket.
type front struct {
	*proxy.Proxy
	t         testing.TB
	tcp, unix string
}

// startProxy runs a proxy in front of a server, given as host:port, and closes it when the test
// ends. What it logs is shown if the test has failed.
func startProxy(t testing.TB, addr string, change ...func(*proxy.Config)) *front {
	t.Helper()
	target, err := upstream.Parse("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{}
	cfg := proxy.DefaultConfig()
	cfg.Upstream = target
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	if _, scripted := fakes.Load(addr); scripted {
		cfg.Reclaim.Mode = reclaim.Off // its own questions are not in the script
	}
	for _, f := range change {
		f(&cfg)
	}
	p, err := proxy.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{Proxy: p, t: t}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		p.Close()
		serving.Wait()
		if t.Failed() {
			t.Logf("the proxy's log:\n%s", log.String())
		}
	})
	// A socket's path is bounded at some 100 bytes, and t.TempDir spells out the test's name.
	dir, err := os.MkdirTemp("", "front")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	f.unix = filepath.Join(dir, "s")
	for _, spec := range []string{"127.0.0.1:0", "unix://" + f.unix} {
		l, err := proxy.Listen(spec)
		if err != nil {
			t.Fatal(err)
		}
		if l.Addr().Network() == "tcp" {
			f.tcp = l.Addr().String()
		}
		serving.Go(func() {
			if err := p.Serve(l); err != nil {
				t.Errorf("serve %s: %v", spec, err)
			}
		})
	}
	return f
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

// startLink opens a link to addr on which a test plays faults.
func startLink(t testing.TB, addr string) *netlab.Link {
	t.Helper()
	l, err := netlab.Start(netlab.Options{Upstream: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// everyListener runs a subtest for each kind of address that a proxy listens on.
func (f *front) everyListener(t *testing.T, check func(t *testing.T, addr string)) {
	for _, l := range []struct{ name, addr string }{{"tcp", f.tcp}, {"unix", f.unix}} {
		t.Run(l.name, func(t *testing.T) { check(t, l.addr) })
	}
}

// client connects over TCP.
func (f *front) client() *client {
	f.t.Helper()
	return connect(f.t, f.tcp)
}

// connect opens a client connection that is closed when the test ends.
func connect(t testing.TB, addr string) *client {
	t.Helper()
	c, err := redistest.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &client{c, t}
}

// reset leaves without goodbye: the peer gets RST, as after a crash.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

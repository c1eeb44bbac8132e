//go:build operations

package operations

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"streamproxy/internal/proxytest"
	"streamproxy/internal/redistest"
)

// probes asks the three pages and fails the test unless the process counts as started and alive:
// whatever the server does, a restart of the proxy would not help. It returns readiness.
func probes(t *testing.T, p *proxytest.Process) (ready bool, why string) {
	t.Helper()
	for _, path := range []string{"/startupz", "/livez"} {
		if code, body := p.Page(path); code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, body)
		}
	}
	code, body := p.Page("/readyz")
	if code != http.StatusOK && code != http.StatusServiceUnavailable {
		t.Fatalf("/readyz: %d %s", code, body)
	}
	return code == http.StatusOK, strings.TrimSpace(body)
}

// notReady waits until readiness is lost for a reason.
func notReady(t *testing.T, p *proxytest.Process, want string) {
	t.Helper()
	proxytest.Eventually(t, "not ready: "+want, func() bool {
		ready, why := probes(t, p)
		return !ready && why == want
	})
}

// A server that is not there when the proxy starts, and comes later.
func TestProbesBeforeTheServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	p := proxytest.Start(t, server.URL())
	notReady(t, p, "upstream is not reachable")
	if up := p.Metric("streamproxy_upstream_up"); up != 0 {
		t.Errorf("upstream_up is %v", up)
	}
	expect(t, p.Client(), notSent, "PING")
	if n := strings.Count(p.Log(), `"upstream is down"`); n != 1 {
		t.Errorf("%d lines about a server that is down:\n%s", n, p.Log())
	}
	server.Restart()
	p.Ready()
	expect(t, p.Client(), "+PONG\r\n", "PING")
	if n := strings.Count(p.Log(), `"upstream is up"`); n != 1 {
		t.Errorf("%d lines about a server that is up:\n%s", n, p.Log())
	}
}

// A server that dies: readiness is not lost at once, lest a failover of a second take a whole fleet
// out of service, but it is lost; and it comes back. Each change of state is one line of the log.
func TestProbesOfADeadServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := proxytest.Start(t, server.URL()).Ready()
	died := time.Now()
	server.Kill()
	notReady(t, p, "upstream is not reachable")
	if took := time.Since(died); took < 3*time.Second {
		t.Errorf("readiness was lost after %v", took)
	}
	server.Restart()
	p.Ready()
	for _, line := range []string{`"upstream is down"`, `"upstream is up"`} {
		want := map[bool]int{true: 1, false: 2}[strings.Contains(line, "down")]
		if n := strings.Count(p.Log(), line); n != want {
			t.Errorf("%d times %s, want %d:\n%s", n, line, want, p.Log())
		}
	}
}

// A server that is stopped keeps its connections and answers nothing: the watchdog finds out, its
// client learns that the outcome is unknown, and readiness is lost. It goes on where it was
// when the server does.
func TestProbesOfAHungServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := proxytest.Start(t, server.URL(), "--upstream-timeout=1s", "--dial-timeout=1s").Ready()
	c := p.Client()
	expect(t, c, "+OK\r\n", "SET", "k", "v")
	server.Stop()
	defer server.Cont()
	expect(t, c, unknown, "GET", "k")
	notReady(t, p, "upstream is not reachable")
	expect(t, c, notSent, "GET", "k")
	server.Cont()
	p.Ready()
	expect(t, c, "$1\r\nv\r\n", "GET", "k")
}

// An address that accepts and never says a word, as a balancer without a server behind it does.
func TestProbesOfASilentAddress(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := proxytest.Start(t, "redis://"+l.Addr().String(), "--dial-timeout=200ms", "--drain-idle=10ms")
	notReady(t, p, "upstream is not reachable")
	expect(t, p.Client(), notSent, "GET", "k")
	p.Signal(syscall.SIGTERM)
	if code := p.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A drain shows at once in readiness and in the metrics, and not in the other probes.
func TestProbesDuringADrain(t *testing.T) {
	t.Parallel()
	p := proxytest.Start(t, redistest.Start(t).URL(), "--drain-min=8s", "--drain-idle=10ms").Ready()
	p.Signal(syscall.SIGTERM)
	notReady(t, p, "draining")
	if on := p.Metric("streamproxy_draining"); on != 1 {
		t.Errorf("draining is %v", on)
	}
	expect(t, p.Client(), "+PONG\r\n", "PING") // new clients are served
	if code := p.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, line := range []string{`"received a signal","signal":"terminated"`, `"draining"`, `"stopped","all_answered":true`} {
		if !strings.Contains(p.Log(), line) {
			t.Errorf("no %s in the log:\n%s", line, p.Log())
		}
	}
}

package telemetry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// state is a snapshot that a test changes while the server reads it.
type state struct {
	mu sync.Mutex
	s  Snapshot
}

func (s *state) get() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.s
}

func (s *state) set(n Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s = n
}

// pipeListener hands out connections made in memory, so that the server can live in a
// bubble of faked time.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	l.conns <- theirs
	return ours, nil
}

// get asks for one page over a connection of its own.
func (l *pipeListener) get(t *testing.T, path string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}
	r, err := client.Get("http://x" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, strings.TrimSpace(string(body))
}

func TestProbes(t *testing.T) {
	up, down := Snapshot{UpstreamUp: true}, Snapshot{}
	for _, step := range []struct {
		name          string
		first, second Snapshot
		after         time.Duration // between the second snapshot and the question
		path          string
		code          int
		body          string
	}{
		{"ready", up, up, 0, "/readyz", 200, "ok"},
		{"server away from the start", down, down, time.Minute, "/readyz", 503, "upstream is not reachable"},
		{"server away for a moment", up, down, 2 * time.Second, "/readyz", 200, "ok"},
		{"server away", up, down, 4 * time.Second, "/readyz", 503, "upstream is not reachable"},
		{"server loading", down, Snapshot{UpstreamUp: true, NotReady: "LOADING x"}, time.Minute, "/readyz", 503, "upstream is not ready: LOADING x"},
		{"server arrives", down, up, 300 * time.Millisecond, "/readyz", 200, "ok"},
		{"draining shows at once", up, Snapshot{UpstreamUp: true, Draining: true}, 0, "/readyz", 503, "draining"},
		{"started without a server", down, down, 0, "/startupz", 200, "ok"},
		{"alive without a server", up, down, time.Minute, "/livez", 200, "ok"},
		{"alive while draining", up, Snapshot{Draining: true}, 0, "/livez", 200, "ok"},
		{"unknown page", up, up, 0, "/nothing", 404, "404 page not found"},
	} {
		t.Run(step.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &state{s: step.first}
				l := newPipeListener()
				s := New(testBuild, testLabels).Serve(l, testBuild, st.get, slog.New(slog.DiscardHandler))
				st.set(step.second)
				time.Sleep(step.after)
				synctest.Wait()
				code, body := l.get(t, step.path)
				if code != step.code || body != step.body {
					t.Errorf("got %d %q, want %d %q", code, body, step.code, step.body)
				}
				s.Close()
			})
		})
	}
}

func TestPages(t *testing.T) {
	st := &state{s: Snapshot{UpstreamUp: true, Clients: 42}}
	m := New(testBuild, testLabels)
	m.Observe(st.get)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := m.Serve(l, testBuild, st.get, slog.New(slog.DiscardHandler))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]string{"/": "clients    42", "/metrics": "streamproxy_client_connections 42"} {
		r, err := client.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d, no %q in\n%s", path, r.StatusCode, want, body)
		}
	}
	s.Close()
}

func TestAFailedListenerIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		_ = l.Close()
		var out bytes.Buffer
		s := New(testBuild, testLabels).Serve(l, testBuild, (&state{}).get, slog.New(slog.NewTextHandler(&out, nil)))
		synctest.Wait()
		s.Close()
		if !strings.Contains(out.String(), "telemetry ended") {
			t.Errorf("logged %q", out.String())
		}
	})
}

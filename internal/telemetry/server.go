package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// sampleEvery is how often readiness looks at the server's state: finer than any
	// probe, and a snapshot costs next to nothing.
	sampleEvery = 250 * time.Millisecond
	// A scrape or probe that takes longer than these has a peer that is gone.
	headerTimeout = 5 * time.Second
	writeTimeout  = 10 * time.Second
	// An idle connection holds one of few places, and a scraper makes a new one in no time.
	idleTimeout  = 10 * time.Second
	closeTimeout = time.Second
	// maxHeader bounds a request's header; none needs more.
	maxHeader = 16 << 10
)

// Server answers scrapes and probes over HTTP.
type Server struct {
	build    Build
	snapshot func() Snapshot
	started  time.Time
	ready    atomic.Bool
	http     http.Server
	stop     chan struct{}
	tasks    sync.WaitGroup
}

// Serve starts to answer on l, which the server closes. It is called once all client
// listeners are open, which is what /startupz reports. Pages:
//
//   - /metrics: the Prometheus text format. It is made every 100 ms at most, see pageEvery.
//   - /startupz: 200, since clients can connect. It does not ask for the server:
//     without Redis a restart of the proxy would not help.
//   - /readyz: 200 when the server is reachable, able to serve, and no drain has begun,
//     else 503 with the reason. A drain shows at once, the rest after Readiness.
//   - /livez: 200 whatever the server does.
//   - /: a few lines for people.
//
// OpenMetrics is not offered: it drops _total from the names of counters, which would
// make client_connections and client_connections_total the same family.
//
// At most 64 connections are open at a time, idle ones for 10 s. One more takes the place of
// another.
//
// Trouble with a connection, and a listener that fails, go to log.
func (m *Metrics) Serve(l net.Listener, b Build, snapshot func() Snapshot, log *slog.Logger) *Server {
	s := &Server{build: b, snapshot: snapshot, started: time.Now(), stop: make(chan struct{})}
	places, mux := limit(l), http.NewServeMux()
	mux.Handle("GET /metrics", newPage(promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP))
	mux.HandleFunc("GET /startupz", func(w http.ResponseWriter, _ *http.Request) { answer(w, "") })
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, "") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.notReady()) })
	mux.HandleFunc("GET /{$}", s.status)
	s.http = http.Server{
		Handler: places.polite(mux), ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ReadTimeout: headerTimeout, ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ConnContext: connContext,
	}
	readiness := DefaultReadiness()
	s.sample(&readiness, s.started)
	s.tasks.Go(func() {
		if err := s.http.Serve(places); !errors.Is(err, http.ErrServerClosed) {
			log.Error("telemetry ended", "error", err)
		}
	})
	s.tasks.Go(func() { s.watch(&readiness) })
	return s
}

// watch samples readiness until the server stops.
func (s *Server) watch(r *Readiness) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-tick.C:
			s.sample(r, now)
		}
	}
}

func (s *Server) sample(r *Readiness, now time.Time) {
	state := s.snapshot()
	s.ready.Store(r.Sample(now, state.UpstreamUp && state.NotReady == ""))
}

// notReady says why no traffic should come here, or nothing.
func (s *Server) notReady() string {
	state := s.snapshot()
	switch {
	case state.Draining:
		return "draining"
	case s.ready.Load():
		return ""
	case !state.UpstreamUp:
		return "upstream is not reachable"
	case state.NotReady != "":
		return "upstream is not ready: " + state.NotReady
	}
	return "upstream came back a moment ago"
}

// answer writes the result of a probe; no problem is good.
func answer(w http.ResponseWriter, problem string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if problem != "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, problem)
		return
	}
	fmt.Fprintln(w, "ok")
}

// status is the page for people.
func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	state := s.snapshot()
	ready := s.notReady()
	if ready == "" {
		ready = "yes"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "streamproxy %s\n\nup since   %s\nready      %s\nclients    %d\nin flight  %d\nlanes      %d\nprivate    %d busy, %d idle\nbuffered   %d bytes\n\n/metrics /startupz /readyz /livez\n",
		s.build.Version, s.started.UTC().Format(time.RFC3339), ready, state.Clients, state.InFlight,
		state.Lanes, state.PrivateBusy, state.PrivateIdle, state.BufferedBytes)
}

// Close lets answers under way end, for at most a second, and stops.
func (s *Server) Close() {
	closeSite(&s.http)
	close(s.stop)
	s.tasks.Wait()
}

// closeSite lets answers under way end, for at most a second.
func closeSite(site *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := site.Shutdown(ctx); err != nil {
		_ = site.Close()
	}
}

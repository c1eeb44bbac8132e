package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Admin is what the administration pages can look at and do.
type Admin struct {
	Build    Build
	Snapshot func() Snapshot
	// Level is the least severe level that is logged; it can be changed.
	Level *slog.LevelVar
	// Quit begins the drain, as SIGTERM does. It must not wait for its end.
	Quit func()
}

// maxProfile bounds a profile or trace that is being recorded while somebody waits.
const maxProfile = 5 * time.Minute

// AdminServer answers administration over HTTP.
type AdminServer struct {
	http    http.Server
	serving sync.WaitGroup
}

// ServeAdmin starts to answer on l, which the server closes. l must be reachable from
// this machine alone, since nobody is asked who they are. Pages:
//
//   - /debug/pprof/: the Go runtime's profiles, one at a time.
//   - GET and PUT /loglevel: debug, info, warn or error.
//   - GET /stats.json: the state of the process, see Stats.
//   - POST /quitquitquit: begins the drain.
//
// At most 64 connections are open at a time, idle ones for 10 s. One more takes the place of
// another.
//
// A browser is refused: any page that somebody looks at on this machine could make it
// ask.
func ServeAdmin(l net.Listener, a Admin, log *slog.Logger) *AdminServer {
	started := time.Now().Round(0) // by the clock on the wall, which goes on while a laptop sleeps
	places, mux := limit(l), http.NewServeMux()
	profiles, recordings := newPace(), newPace()
	mux.HandleFunc("GET /debug/pprof/", briefly(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("seconds") != "" { // the difference between two
			recordings.record(pprof.Index)(w, r)
			return
		}
		profiles.profile(pprof.Index)(w, r)
	}))
	mux.HandleFunc("GET /debug/pprof/profile", briefly(recordings.record(pprof.Profile)))
	mux.HandleFunc("GET /debug/pprof/trace", briefly(recordings.record(pprof.Trace)))
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /loglevel", func(w http.ResponseWriter, _ *http.Request) { say(w, levelName(a.Level.Level())) })
	mux.HandleFunc("PUT /loglevel", func(w http.ResponseWriter, r *http.Request) { a.setLevel(w, r, log) })
	mux.Handle("GET /stats.json", newPage(func(w http.ResponseWriter, _ *http.Request) { a.stats(w, started) }))
	mux.HandleFunc("POST /quitquitquit", func(w http.ResponseWriter, _ *http.Request) {
		log.Info("asked to quit", "by", "admin")
		a.Quit()
		say(w, "draining")
	})
	s := &AdminServer{}
	s.http = http.Server{
		Handler: places.polite(localOnly(mux)), ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ReadTimeout: headerTimeout, ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ConnContext: connContext,
	}
	s.serving.Go(func() {
		if err := s.http.Serve(places); !errors.Is(err, http.ErrServerClosed) {
			log.Error("administration ended", "error", err)
		}
	})
	return s
}

// briefly refuses a profile of more than maxProfile. The pages of pprof extend the
// time to write by that of the profile themselves.
func briefly(profile http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if seconds, err := strconv.ParseFloat(r.FormValue("seconds"), 64); err == nil && !(seconds <= maxProfile.Seconds()) {
			http.Error(w, fmt.Sprintf("want at most %v seconds", maxProfile.Seconds()), http.StatusBadRequest)
			return
		}
		profile(w, r)
	}
}

// profile has profiles made one at a time. Some stop everything else while they are made.
func (p *pace) profile(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p.enter(r.Context()) == nil {
			defer p.leave()
			_ = p.do(r.Context(), func() { next(w, r) }) // else nobody is there any more
		}
	}
}

// record is profile for what is recorded while somebody waits: others are refused meanwhile.
func (p *pace) record(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !p.tryEnter() {
			http.Error(w, "something is being recorded; try again later", http.StatusServiceUnavailable)
			return
		}
		defer p.leave()
		_ = p.do(r.Context(), func() { next(w, r) })
	}
}

// Stats is the page /stats.json.
type Stats struct {
	Version       string  `json:"version"`
	Revision      string  `json:"revision"`
	UptimeSeconds float64 `json:"uptime_seconds"`
	Snapshot
}

func (a *Admin) stats(w http.ResponseWriter, started time.Time) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(Stats{ // a reader that has gone need not be told
		Version: a.Build.Version, Revision: a.Build.Revision, UptimeSeconds: time.Since(started).Seconds(), Snapshot: a.Snapshot(),
	})
}

func (a *Admin) setLevel(w http.ResponseWriter, r *http.Request, log *slog.Logger) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16))
	word := strings.ToLower(strings.TrimSpace(string(body)))
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if err == nil && word == levelName(level) {
			a.Level.Set(level)
			log.Info("log level changed", "level", word)
			say(w, word)
			return
		}
	}
	http.Error(w, fmt.Sprintf("want one of %s", strings.Join(logLevels, ", ")), http.StatusBadRequest)
}

func say(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprintln(w, text)
}

// localOnly refuses what a browser asks on behalf of a page, and what came by a name
// that is not this machine's: a name of somebody else's that leads to loopback is how
// a page gets around the rule that it may ask only where it came from.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		local := host == "localhost" || ip != nil && ip.IsLoopback() || throughSocket(r)
		if !local || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
			http.Error(w, "administration is for this machine, and not for browsers", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// throughSocket reports whether a request came through a unix socket, where any name
// will do.
func throughSocket(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && addr.Network() == "unix"
}

// Local reports whether only this machine can reach a listener.
func Local(l net.Listener) bool {
	tcp, ok := l.Addr().(*net.TCPAddr)
	return l.Addr().Network() == "unix" || ok && tcp.IP.IsLoopback()
}

// Close lets answers under way end, for at most a second, and stops.
func (s *AdminServer) Close() {
	closeSite(&s.http)
	s.serving.Wait()
}

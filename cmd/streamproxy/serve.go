package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"

	"streamproxy/internal/certs"
	"streamproxy/internal/config"
	"streamproxy/internal/heap"
	"streamproxy/internal/telemetry"
	"streamproxy/proxy"
)

// serve is the command that runs the proxy until a signal, or the end of ctx, and
// then drains it. A second signal ends the drain.
func serve(ctx context.Context, args []string, p process) error {
	surviveReaders()
	here := machine()
	c, err := config.Load(args, p.environ, here, nil)
	if err != nil {
		return err
	}
	metrics := telemetry.New(build(), labels())
	admin := &administration{level: new(slog.LevelVar)}
	log, endLog := newLogger(p.stderr, c.Config, metrics, admin.level)
	defer endLog()
	if files, err := openFiles(); err == nil {
		fitClients(c, files)
	}
	for _, w := range c.Warnings {
		log.Warn("questionable configuration", "problem", w)
	}
	runtime.GOMAXPROCS(c.Threads.Value)
	room := findRoom(c.Config, here)
	room.keep()
	stop := watchSignals(ctx, log)
	defer stop.end()
	s, err := start(c, room, metrics, admin, log)
	if err != nil {
		return err
	}
	return s.run(stop)
}

// service is a running proxy and what belongs to it.
type service struct {
	log       *slog.Logger
	proxy     *proxy.Proxy
	telemetry *telemetry.Server // nil when it is off
	admin     *administration
	files     certificates
	accepting sync.WaitGroup // one goroutine a listener, ended by the proxy's Close
	failed    chan error     // of a listener
}

// start opens every address before it reaches for the server, so that a configuration
// that cannot work fails at once and whole.
func start(c *config.Loaded, room room, m *telemetry.Metrics, admin *administration, log *slog.Logger) (*service, error) {
	pc, err := proxyConfig(c.Config, m, log)
	if err != nil {
		return nil, err
	}
	if room.ceiling > 0 {
		pc.Ceiling, pc.Need = room.ceiling, room.need
	}
	files := certificates{log: log, upstream: pc.Upstream.TLS, clients: c.ClientTLS()}
	if err := files.load(); err != nil {
		return nil, err
	}
	clients, probes, err := listen(c.Config, files.clients)
	if err != nil {
		return nil, err
	}
	if err := admin.open(c.Config, log); err != nil {
		closeAll(append(clients, probes...))
		return nil, err
	}
	px, err := proxy.New(pc)
	if err != nil {
		closeAll(append(clients, probes...))
		admin.close()
		// What the flags' own checks do not know, such as which commands can be shared.
		return nil, fmt.Errorf("%w: %w", errConfig, err)
	}
	s := &service{log: log, proxy: px, files: files, admin: admin, failed: make(chan error, len(clients))}
	for _, l := range clients {
		s.accepting.Go(func() {
			if err := px.Serve(l); err != nil {
				s.failed <- err
			}
		})
	}
	state := func() telemetry.Snapshot { return snapshot(px) }
	m.Observe(state)
	for _, l := range probes {
		s.telemetry = m.Serve(l, build(), state, log)
	}
	admin.serve(state, log)
	logStart(log, c, pc, clients, probes, admin.address())
	return s, nil
}

// listen opens the client addresses and that of telemetry, which is a list of none or
// one. secure is for the tls:// ones. The error names every address that failed.
func listen(c config.Config, secure *certs.Source) (clients, probes []net.Listener, err error) {
	var errs []error
	handshakes := proxy.NewHandshakes()
	open := func(spec string) []net.Listener {
		l, err := proxy.Listen(spec)
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		return []net.Listener{l}
	}
	for _, spec := range c.Listen {
		addr, encrypted := strings.CutPrefix(spec, config.TLSPrefix)
		for _, l := range open(addr) {
			if encrypted {
				l = tls.NewListener(proxy.Metered(l), secure.Listening(handshakes))
			}
			clients = append(clients, l)
		}
	}
	if c.TelemetryListen != config.TelemetryOff {
		probes = open(c.TelemetryListen)
	}
	if len(errs) > 0 {
		closeAll(append(clients, probes...))
		return nil, nil, errors.Join(errs...)
	}
	return clients, probes, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

// logStart writes the one line that says what runs here. Addresses are those that
// were bound, which matters for port 0.
func logStart(log *slog.Logger, c *config.Loaded, pc proxy.Config, clients, probes []net.Listener, admin string) {
	flags := make([]any, 0, 2*len(c.Changed))
	for _, s := range c.Changed {
		flags = append(flags, s.Name, s.Value)
	}
	log.Info("started", "version", pc.Version, "listen", addresses(clients), "telemetry", addresses(probes),
		"admin", admin, "upstream", pc.Upstream.String(), "threads", c.Threads.Value, slog.Group("flags", flags...))
}

func addresses(listeners []net.Listener) []string {
	list := make([]string, len(listeners))
	for i, l := range listeners {
		list[i] = l.Addr().String()
	}
	return list
}

// run waits for a reason to stop, drains, and closes everything. Probes are answered
// until the end. A listener that failed takes the process down, drained like any
// other: clients that cannot connect should find another proxy.
func (s *service) run(stop *signals) error {
	var err error
	defer s.files.followSignals()()
	defer s.keepMemory()()
	select {
	case <-stop.drain.Done():
	case <-s.admin.quit:
	case err = <-s.failed:
		s.log.Error("a listener failed", "error", err)
	}
	s.log.Info("draining")
	clean := s.proxy.Shutdown(stop.now)
	s.proxy.Close()
	s.accepting.Wait()
	if s.telemetry != nil {
		s.telemetry.Close()
	}
	s.admin.close()
	s.log.Info("stopped", "all_answered", clean)
	if err == nil && !clean {
		err = errUnanswered
	}
	return err
}

// keepMemory gives memory back after bursts until the returned function is called.
func (s *service) keepMemory() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() { heap.Keep(ctx, s.proxy.Held) })
	return func() {
		cancel()
		keeping.Wait()
	}
}

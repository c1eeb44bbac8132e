package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"

	"streamproxy/internal/config"
	"streamproxy/internal/telemetry"
	"streamproxy/proxy"
)

// administration is the pages of --admin-listen and what they can set off.
type administration struct {
	level *slog.LevelVar
	quit  chan struct{} // closed when somebody has asked to drain
	once  sync.Once

	listener net.Listener           // nil when it is off
	server   *telemetry.AdminServer // likewise
}

// open listens, or does not where the address is nobody's wish but the default and is
// taken: a second proxy on a machine must not fail for it.
func (a *administration) open(c config.Config, log *slog.Logger) error {
	a.quit = make(chan struct{})
	if c.AdminListen == config.TelemetryOff {
		return nil
	}
	l, err := proxy.Listen(privately(c.AdminListen))
	switch {
	case err != nil && c.AdminListen == config.DefaultAdmin && errors.Is(err, syscall.EADDRINUSE):
		log.Warn("no administration pages: their default address is taken", "error", err)
		return nil
	case err != nil:
		return err
	case !telemetry.Local(l): // "localhost" may mean anything
		_ = l.Close()
		return fmt.Errorf("admin-listen: %s is not this machine alone", l.Addr())
	}
	a.listener = l
	return nil
}

// privately makes a socket its owner's alone unless the address says otherwise.
func privately(addr string) string {
	u, err := url.Parse(addr)
	if err != nil || !strings.HasPrefix(addr, "unix:") || u.Query().Has("mode") {
		return addr
	}
	u.RawQuery = "mode=0600"
	return u.String()
}

// serve starts to answer.
func (a *administration) serve(state func() telemetry.Snapshot, log *slog.Logger) {
	if a.listener == nil {
		return
	}
	a.server = telemetry.ServeAdmin(a.listener, telemetry.Admin{
		Build: build(), Snapshot: state, Level: a.level,
		Quit: func() { a.once.Do(func() { close(a.quit) }) },
	}, log)
}

// close ends what open and serve have begun.
func (a *administration) close() {
	if a.server != nil {
		a.server.Close()
	} else if a.listener != nil {
		_ = a.listener.Close()
	}
}

// address is where it listens, or nothing.
func (a *administration) address() string {
	if a.listener == nil {
		return config.TelemetryOff
	}
	return a.listener.Addr().String()
}

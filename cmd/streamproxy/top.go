package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"streamproxy/internal/config"
	"streamproxy/internal/top"
)

// topOptions is what the command top can be told.
type topOptions struct {
	out           string
	every         time.Duration
	listen, admin string
}

func (o *topOptions) flags() *flag.FlagSet {
	set := flag.NewFlagSet("top", flag.ContinueOnError)
	set.StringVar(&o.out, "o", "", "write one view to this `PATH` and end, - being standard output")
	set.DurationVar(&o.every, "interval", time.Second, "time between two views, over which rates are taken")
	set.StringVar(&o.listen, "telemetry-listen", o.listen, "`ADDR` of the proxy's telemetry")
	set.StringVar(&o.admin, "admin-listen", o.admin, "`ADDR` of the proxy's administration")
	return set
}

// showTop is the command that shows what a running proxy does: on a terminal until q is
// pressed, elsewhere as one text after the other, or once with -o.
func showTop(ctx context.Context, args []string, p process) error {
	o := topOptions{listen: telemetryAddress(p.environ), admin: variable(p.environ, config.EnvPrefix+"ADMIN_LISTEN", config.DefaultAdmin)}
	if err := parseOwn(o.flags(), args); err != nil {
		return err
	}
	o.notOthers()
	if o.every < top.MinEvery || o.every > top.MaxEvery {
		return config.Faults{{Name: "--interval", Value: o.every.String(), Problem: "is out of bounds",
			Bound: fmt.Sprintf("%v to %v", top.MinEvery, top.MaxEvery)}}
	}
	show := top.Options{Every: o.every, Colour: variable(p.environ, "NO_COLOR", "") == ""}
	var err error
	if show.Metrics, err = pageOf(o.listen, "/metrics"); err != nil {
		return fmt.Errorf("top: %w", err)
	}
	if show.Stats, err = pageOf(o.admin, "/stats.json"); err != nil {
		return fmt.Errorf("top: %w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.show(ctx, show, p); err != nil {
		return fmt.Errorf("top: %w", err)
	}
	return nil
}

// notOthers leaves a default address out where the other one was given: who names one
// of them may mean another proxy than the one at the defaults.
func (o *topOptions) notOthers() {
	telemetry := config.Default(config.Machine{}).TelemetryListen
	named := func(addr, otherwise string) bool { return addr != otherwise && addr != config.TelemetryOff }
	switch {
	case named(o.listen, telemetry) && o.admin == config.DefaultAdmin:
		o.admin = config.TelemetryOff
	case named(o.admin, config.DefaultAdmin) && o.listen == telemetry:
		o.listen = config.TelemetryOff
	}
}

// show chooses between the ways to show.
func (o *topOptions) show(ctx context.Context, show top.Options, p process) error {
	switch {
	case o.out == "-":
		return show.Once(ctx, p.stdout)
	case o.out != "":
		var text bytes.Buffer
		if err := show.Once(ctx, &text); err != nil {
			return err
		}
		return os.WriteFile(o.out, text.Bytes(), 0o644)
	case !isTerminal(p.stdout):
		return show.Lines(ctx, p.stdout)
	}
	terminal, ctx, err := top.OpenTerminal(ctx)
	if err != nil {
		return err
	}
	defer terminal.Close()
	return show.Live(ctx, terminal)
}

// pageOf is where a page of a proxy is that listens at an address: host:port, a socket,
// or off.
func pageOf(listen, page string) (top.Source, error) {
	transport := &http.Transport{}
	s := top.Source{Client: &http.Client{Timeout: probeTimeout, Transport: transport}}
	if listen == config.TelemetryOff {
		return s, nil
	}
	u, err := url.Parse(listen)
	if err != nil || u.Scheme != "unix" {
		s.URL, err = pageURL(listen, page)
		return s, err
	}
	s.URL = "http://socket" + page
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", u.Path)
	}
	return s, nil
}

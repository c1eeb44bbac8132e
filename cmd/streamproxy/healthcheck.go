package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"streamproxy/internal/config"
)

// healthTimeout is short because probes run often and a healthy process answers in
// well under a millisecond.
const healthTimeout = 2 * time.Second

// healthcheck is the command for exec probes in images without a shell or curl. It
// reads the address of a running proxy from the same variable as that proxy.
func healthcheck(ctx context.Context, args []string, p process) error {
	listen := config.Default(config.Machine{}).TelemetryListen
	for _, entry := range p.environ {
		if v, ok := strings.CutPrefix(entry, config.EnvPrefix+"TELEMETRY_LISTEN="); ok && v != "" {
			listen = v
		}
	}
	set := flag.NewFlagSet("healthcheck", flag.ContinueOnError)
	url := set.String("url", "", "")
	set.StringVar(&listen, "telemetry-listen", listen, "")
	if err := parseOwn(set, args); err != nil {
		return err
	}
	if *url == "" {
		var err error
		if *url, err = livez(listen); err != nil {
			return err
		}
	}
	return ask(ctx, *url)
}

// livez makes the URL of the live probe from an address to listen on.
func livez(listen string) (string, error) {
	if listen == config.TelemetryOff {
		return "", fmt.Errorf("healthcheck: telemetry is off, so there is nobody to ask")
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("healthcheck: %w", err)
	}
	// Nobody can be called at "all addresses"; the loopback one is among them.
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/livez", nil
}

// ask returns nil if and only if url answers 200 in time.
func ask(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	// A proxy from the environment must not answer for the process beside us.
	client := http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return fmt.Errorf("healthcheck: %s: %s: %s", url, resp.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

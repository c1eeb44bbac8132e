package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"streamproxy/internal/config"
)

// probeTimeout is short because probes run often and a healthy process answers in
// well under a millisecond.
const probeTimeout = 2 * time.Second

// telemetryAddress is where a proxy started with the same environment answers probes,
// as --telemetry-listen has it.
func telemetryAddress(environ []string) string {
	return variable(environ, config.EnvPrefix+"TELEMETRY_LISTEN", config.Default(config.Machine{}).TelemetryListen)
}

// variable is the value of one in the environment, or another if it is unset or empty.
func variable(environ []string, name, otherwise string) string {
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok && v != "" {
			otherwise = v
		}
	}
	return otherwise
}

// pageURL makes the URL of a page of telemetry from an address to listen on.
func pageURL(listen, page string) (string, error) {
	if listen == config.TelemetryOff {
		return "", errors.New("telemetry is off, so there is nobody to ask")
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	// Nobody can be called at "all addresses"; the loopback one is among them.
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port) + page, nil
}

// ask returns nil if and only if url answers 200 in time. Otherwise the error has what
// it answers.
func ask(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// A proxy from the environment must not answer for the process beside us.
	client := http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // what is missing of the reason shows
	return fmt.Errorf("%s: %s: %s", url, resp.Status, strings.TrimSpace(string(body)))
}

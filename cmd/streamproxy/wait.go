package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"streamproxy/internal/config"
)

const (
	// waitTimeout is how long wait waits unless it is told otherwise: as long as the
	// startup probes of the manifests.
	waitTimeout = 30 * time.Second
	// waitEvery is the time between two questions; nobody notices a tenth of a second,
	// and a question costs next to nothing.
	waitEvery = 100 * time.Millisecond
)

// goals is what can be waited for: the page to ask, and whether its answer, nil being
// 200, is the one that is waited for.
var goals = map[string]struct {
	page    string
	reached func(answer error) bool
}{
	"started": {"/startupz", func(err error) bool { return err == nil }},
	"ready":   {"/readyz", func(err error) bool { return err == nil }},
	// A process that is there answers, however slowly; one that refuses has none.
	"drained": {"/livez", func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
}

// waitOptions is what the command wait can be told. The goal is for applications that
// can live without the server (started) and for jobs that have asked the proxy to quit
// (drained); the timeout, because a container that waits for ever tells nobody why.
type waitOptions struct {
	goal    choice
	timeout time.Duration
	listen  string
}

func (o *waitOptions) flags() *flag.FlagSet {
	o.goal = choice{"ready", slices.Sorted(maps.Keys(goals))}
	o.timeout = waitTimeout
	set := flag.NewFlagSet("wait", flag.ContinueOnError)
	set.Var(&o.goal, "for", "what to wait for")
	set.DurationVar(&o.timeout, "timeout", o.timeout, "give up after that long")
	set.StringVar(&o.listen, "telemetry-listen", o.listen, "`ADDR` of the proxy's telemetry")
	return set
}

// wait is the command for the beginning of a container that must not start before the
// proxy beside it. It asks where healthcheck asks, and returns when the goal is reached.
func wait(ctx context.Context, args []string, p process) error {
	o := waitOptions{listen: telemetryAddress(p.environ)}
	if err := parseOwn(o.flags(), args); err != nil {
		return err
	}
	if o.timeout <= 0 {
		return config.Faults{{Name: "--timeout", Value: o.timeout.String(), Problem: "is not above 0"}}
	}
	url, err := pageURL(o.listen, goals[o.goal.value].page)
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if heard, ok := await(ctx, url, goals[o.goal.value].reached); !ok {
		return fmt.Errorf("wait: not %s within %v; last heard: %s", o.goal.value, o.timeout, heard)
	}
	return nil
}

// await asks url until the answer is the one that is waited for. If ctx ends first, it
// returns what was heard last.
func await(ctx context.Context, url string, reached func(error) bool) (heard string, ok bool) {
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	heard = "nothing"
	for {
		err := ask(ctx, url)
		if reached(err) {
			return "", true
		}
		if err == nil {
			heard = url + " answers"
		} else if ctx.Err() == nil || heard == "nothing" { // else only that time is up
			heard = err.Error()
		}
		select {
		case <-ctx.Done():
			return heard, false
		case <-tick.C:
		}
	}
}

// choice is the value of a flag that has a few words only.
type choice struct {
	value string
	words []string
}

// String implements flag.Value.
func (c *choice) String() string { return c.value }

// Set implements flag.Value.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return fmt.Errorf("want %s", strings.Join(c.words, ", "))
	}
	c.value = text
	return nil
}

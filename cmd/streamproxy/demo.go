package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"streamproxy/internal/config"
	"streamproxy/internal/demo"
	"streamproxy/internal/telemetry"
)

// demoOptions is what the command demo can be told.
type demoOptions struct {
	url      string
	duration time.Duration
}

func (o *demoOptions) flags() *flag.FlagSet {
	set := flag.NewFlagSet("demo", flag.ContinueOnError)
	set.StringVar(&o.url, "upstream", "", "the server at this `URL` instead of an embedded one")
	set.DurationVar(&o.duration, "duration", demo.DefaultOptions().Duration, "how long the first part lasts")
	return set
}

// showDemo is the command that shows what the proxy does. The proxy shown has default
// flags whatever the environment says, because a variable meant for a real proxy must
// not send the demo's load to a real server; only --upstream does. Its threads are the
// process's, which is server, link and clients as well.
func showDemo(ctx context.Context, args []string, p process) error {
	var told demoOptions
	if err := parseOwn(told.flags(), args); err != nil {
		return err
	}
	o := demo.DefaultOptions()
	o.Duration = told.duration
	var given []string
	if o.External = told.url != ""; o.External {
		given = []string{"--upstream=" + told.url}
	}
	c, err := config.Load(given, nil, machine(), nil)
	if err != nil {
		return err
	}
	if o.Duration < demo.MinDuration || o.Duration > demo.MaxDuration {
		return config.Faults{{Name: "--duration", Value: o.Duration.String(), Problem: "is out of bounds",
			Bound: fmt.Sprintf("%v to %v", demo.MinDuration, demo.MaxDuration)}}
	}
	for _, w := range c.Warnings {
		fmt.Fprintln(p.stderr, "warning:", w)
	}
	c.LogLevel = "warn" // the table is what there is to see
	metrics := telemetry.New(build(), labels())
	log, endLog := newLogger(p.stderr, c.Config, metrics, new(slog.LevelVar))
	defer endLog()
	if o.Proxy, err = proxyConfig(c.Config, metrics, log); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	out, ctx := readersOf(ctx, p.stdout)
	defer out.close() // the last of all, when the demo has tidied up
	o.Out, o.Terminal = out, isTerminal(p.stdout)
	return demo.Run(ctx, o)
}

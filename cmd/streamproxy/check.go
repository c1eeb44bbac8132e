package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"streamproxy/internal/config"
	"streamproxy/internal/upstream"
)

// checkOptions is what the command check can be told beside the flags of the proxy.
type checkOptions struct{ dial bool }

func (o *checkOptions) flags() *flag.FlagSet {
	set := flag.NewFlagSet("check", flag.ContinueOnError)
	set.BoolVar(&o.dial, "dial", false, "also greet the server")
	return set
}

// check is the command that validates everything without listening. Faults are those
// of a run; an unreachable or refusing server is an error of --dial alone.
func check(ctx context.Context, args []string, p process) error {
	var o checkOptions
	c, err := config.Load(args, p.environ, machine(), o.flags())
	if err != nil {
		return err
	}
	if files, err := openFiles(); err == nil {
		fitClients(c, files)
	}
	for _, w := range c.Warnings {
		fmt.Fprintln(p.stderr, "warning:", w)
	}
	c.WriteEffective(p.stdout)
	if o.dial {
		return greet(ctx, c.Config, p)
	}
	return nil
}

// greet opens one connection as clients would get it, and closes it.
func greet(ctx context.Context, c config.Config, p process) error {
	target, err := c.Target()
	if err != nil {
		return err
	}
	d := upstream.Dialer{
		Target: target, Timeout: c.DialTimeout,
		Name: func(kind string) string { return upstream.ConnName(hostname(), kind) },
	}
	conn, greeting, err := d.Dial(ctx, upstream.Key{DB: target.DB, Proto: 2}, "check")
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	_ = conn.Close()
	state := "answers"
	switch {
	case greeting.NoAuth:
		state = "answers, and wants a password that the proxy was not given: clients must authenticate themselves"
	case greeting.NotReady != "":
		state = "answers, but is not ready: " + greeting.NotReady
	}
	fmt.Fprintf(p.stdout, "# %s %s\n", target, state)
	return nil
}

// hostname names this machine in the server's list of clients.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

package main

import (
	"context"
	"flag"
	"fmt"
)

// healthcheckOptions is what the command healthcheck can be told.
type healthcheckOptions struct{ url, listen string }

func (o *healthcheckOptions) flags() *flag.FlagSet {
	set := flag.NewFlagSet("healthcheck", flag.ContinueOnError)
	set.StringVar(&o.url, "url", "", "ask this `URL`")
	set.StringVar(&o.listen, "telemetry-listen", o.listen, "`ADDR` of the proxy's telemetry")
	return set
}

// healthcheck is the command for exec probes in images without a shell or curl. It
// reads the address of a running proxy from the same variable as that proxy.
func healthcheck(ctx context.Context, args []string, p process) error {
	o := healthcheckOptions{listen: telemetryAddress(p.environ)}
	if err := parseOwn(o.flags(), args); err != nil {
		return err
	}
	if o.url == "" {
		var err error
		if o.url, err = pageURL(o.listen, "/livez"); err != nil {
			return fmt.Errorf("healthcheck: %w", err)
		}
	}
	if err := ask(ctx, o.url); err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	return nil
}

package main

import (
	"context"
	"io"

	"streamproxy/bench/internal/result"
)

// unobserved is the proxy without telemetry.
const unobserved = "streamproxy:telemetry-listen=off"

// metrics measures what counting costs: the same pipelined load with telemetry and without.
func metrics(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse("metrics", args, []string{unobserved, "streamproxy"}, nil)
	if err != nil {
		return err
	}
	return measured(ctx, "metrics", o, []result.Cell{
		{Command: "GET", Callers: 50, Pipeline: 16},
		{Command: "GET", Callers: 50, Pipeline: 64},
	}, out)
}

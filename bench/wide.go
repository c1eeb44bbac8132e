package main

import (
	"context"
	"io"

	"streamproxy/bench/internal/result"
)

// wideFill is how many keys a caller of Fill writes for an MGET.
const wideFill = 100

// wide measures one command with many keys: its request grows out of a lane's into a stream, its
// reply into a giant.
func wide(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse("wide", args, []string{"direct", "streamproxy"}, nil)
	if err != nil {
		return err
	}
	var cells []result.Cell
	for _, n := range []int{10, 100, 1000, 10_000, 100_000} {
		cells = append(cells, result.Cell{Command: "MGET", Callers: 1, Pipeline: 1, Keys: n})
	}
	return measured(ctx, "wide", o, cells, out)
}

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"streamproxy/bench/internal/lab"
	"streamproxy/bench/internal/result"
)

// throughput measures closed loops: C callers, each with a pipeline of P.
func throughput(ctx context.Context, args []string, out io.Writer) error {
	var cells, commands string
	sides := append([]string{"direct"}, append(lab.DefaultPeers, "streamproxy")...)
	o, err := parse("throughput", args, sides, func(f *flag.FlagSet) {
		f.StringVar(&cells, "cells", "", "callers x pipeline, such as 50x1,50x16; all of the goals' cells if empty, those two with --quick")
		f.StringVar(&commands, "commands", "SET,GET", "commands to measure")
	})
	if err != nil {
		return err
	}
	if cells == "" {
		cells = "1x1,10x1,50x1,500x1,1x16,10x16,50x16,500x16"
		if o.rounds < minRounds {
			cells = "50x1,50x16"
		}
	}
	loads, err := parseCells(cells, commands)
	if err != nil {
		return err
	}
	return measured(ctx, "throughput", o, loads, out)
}

// measured opens the sides, measures the cells and reports.
func measured(ctx context.Context, name string, o options, cells []result.Cell, out io.Writer) error {
	l, err := lab.Open(ctx, o.sides)
	if err != nil {
		return err
	}
	defer l.Close()
	b := &bench{lab: l, opts: o, report: newReport(name, &o, l), out: out}
	b.report.Markdown(out)
	if err := b.cells(ctx, cells); err != nil {
		return err
	}
	return finish(b.report, &o, out)
}

// parseCells reads "50x1,50x16" for each of the commands. The sign may be an x or a ×.
func parseCells(cells, commands string) ([]result.Cell, error) {
	var all []result.Cell
	for _, command := range strings.Split(commands, ",") {
		if requests[command] == nil {
			return nil, fmt.Errorf("--commands %q: only SET and GET", command)
		}
		for _, text := range strings.Split(cells, ",") {
			callers, pipeline, found := strings.Cut(strings.ReplaceAll(text, "×", "x"), "x")
			c, errC := strconv.Atoi(callers)
			p, errP := strconv.Atoi(pipeline)
			if !found || errC != nil || errP != nil || c < 1 || c > 10000 || p < 1 || p > 1000 {
				return nil, fmt.Errorf("--cells %q: callers x pipeline, from 1x1 to 10000x1000", text)
			}
			all = append(all, result.Cell{Command: command, Callers: c, Pipeline: p})
		}
	}
	return all, nil
}

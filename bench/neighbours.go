package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"streamproxy/bench/internal/lab"
	"streamproxy/bench/internal/neighbourlab"
	"streamproxy/bench/internal/result"
)

// neighbourOptions are the flags of the neighbours program.
type neighbourOptions struct {
	only   []string // attacks; empty: all
	sides  []string
	runs   int
	stand  neighbourlab.Stand
	folder string
	args   string
}

func parseNeighbours(args []string) (neighbourOptions, error) {
	o := neighbourOptions{args: strings.Join(args, " "), stand: neighbourlab.Stand{Warmup: time.Second, After: time.Second}}
	flags := flag.NewFlagSet("neighbours", flag.ContinueOnError)
	only := flags.String("only", "", "attacks to measure, separated by commas; empty: all. What an earlier result has about others is kept")
	sides := flags.String("sides", "direct,streamproxy", "what to compare, the first being what others are held against; flags as for throughput")
	flags.IntVar(&o.runs, "runs", 1, fmt.Sprintf("rounds in which the sides are measured in turn; a result has %d", minRounds))
	flags.DurationVar(&o.stand.Span, "time", 3*time.Second, "how long an attack lasts")
	flags.DurationVar(&o.stand.Trip, "delay", 0, "round trip of a link before the server, such as 28ms; 0: no link")
	flags.StringVar(&o.folder, "out", "bench/results", "folder of the JSON results")
	flags.Usage = func() {
		flags.PrintDefaults()
		fmt.Fprintln(flags.Output(), "attacks:")
		for _, a := range neighbourlab.Attacks() {
			fmt.Fprintf(flags.Output(), "  %s: %s\n", a.Name, a.What)
		}
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if _, err := neighbourlab.Find(name); err != nil {
			return o, fmt.Errorf("--only: %w", err)
		}
	}
	o.sides = strings.Split(*sides, ",")
	for i := range o.sides {
		if o.stand.Trip > 0 {
			o.sides[i] += ":rtt=" + o.stand.Trip.String()
		}
	}
	if len(flags.Args()) > 0 || o.runs < 1 || o.stand.Span < 100*time.Millisecond || o.stand.Trip < 0 {
		return o, fmt.Errorf("--runs %d: at least 1; --time %v: at least 100ms; --delay %v: at least 0; further arguments %q: none",
			o.runs, o.stand.Span, o.stand.Trip, flags.Args())
	}
	return o, nil
}

// neighbours measures what well-behaved clients wait while others misbehave.
func neighbours(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseNeighbours(args)
	if err != nil {
		return err
	}
	return o.run(ctx, out)
}

// run measures and reports.
func (o *neighbourOptions) run(ctx context.Context, out io.Writer) (err error) {
	if o.stand.Program, err = os.Executable(); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "streamproxy-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	binary := ""
	if slices.ContainsFunc(o.sides, func(side string) bool { return strings.HasPrefix(side, "streamproxy") }) {
		if binary, err = lab.BuildStreamproxy(ctx, folder); err != nil {
			return err
		}
	}
	run, err := o.measure(ctx, binary, out)
	if err != nil {
		return err
	}
	neighbourlab.Table(out, run)
	report, err := neighbourlab.Load(o.folder)
	if err != nil {
		return err
	}
	report.Add(run)
	path, err := report.Save(o.folder)
	if err == nil {
		fmt.Fprintf(out, "\nwritten to %s\n", path)
	}
	return err
}

// attacks are those asked for, behind a nil for the quiet row.
func (o *neighbourOptions) attacks() []*neighbourlab.Attack {
	all := []*neighbourlab.Attack{nil}
	for _, a := range neighbourlab.Attacks() {
		if len(o.only) == 0 || slices.Contains(o.only, a.Name) {
			all = append(all, &a)
		}
	}
	return all
}

// measure goes through the attacks in rounds. Each has processes of its own: they remember.
func (o *neighbourOptions) measure(ctx context.Context, binary string, out io.Writer) (*result.Report, error) {
	var run *result.Report
	attacks := o.attacks()
	cells := make([]result.Cell, len(attacks))
	for round := range o.runs {
		for i, attack := range attacks {
			cells[i].Title = neighbourlab.Quiet
			if attack != nil {
				cells[i].Title = attack.Name
			}
			if o.stand.Trip > 0 {
				cells[i].Trip = o.stand.Trip.String()
			}
			l, err := lab.OpenBuilt(ctx, binary, o.sides)
			if err != nil {
				return nil, err
			}
			if run == nil {
				run = newReport("neighbours", &options{args: o.args, rounds: o.runs}, l)
			}
			fmt.Fprintf(out, "round %d: %s ...\n", round+1, cells[i].Title)
			err = o.sidesOf(ctx, l, attack, &cells[i])
			l.Close()
			if err != nil {
				return nil, err
			}
		}
	}
	run.Cells = cells
	return run, nil
}

// sidesOf measures one attack, the sides in turn.
func (o *neighbourOptions) sidesOf(ctx context.Context, l *lab.Lab, attack *neighbourlab.Attack, cell *result.Cell) error {
	for i := range l.Sides {
		side := &l.Sides[i]
		sample, err := o.stand.Measure(ctx, l, side, attack)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s, %s: %w", cell.Title, side.Name, err)
		}
		cell.Add(side.Name, sample)
	}
	return nil
}

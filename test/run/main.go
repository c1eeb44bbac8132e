// Command run is the test runner behind `make test` and `make check`.
//
// It runs the stages listed in stages.go in order, prints how long each took and how many
// tests it ran, and closes with one line of totals. Every stage is run even if an earlier one
// failed, unless it could not do anything sensible then. The exit code is 0 only if every stage
// passed and nothing was skipped; ALLOW_SKIP=1 permits skips.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "test run failed:", err)
		os.Exit(1)
	}
}

// run parses the arguments, runs the chosen stages and returns an error if any of them failed.
func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "only the quick stages, without the slow tests in them")
	only := flags.String("only", "", "run these stages, separated by commas")
	fuzzTime := flags.String("fuzztime", "100000x", "given to each fuzz target: a number of runs, or a time such as 10m")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(stages, *quick, *only)
	if err != nil {
		return err
	}
	j := &job{out: out, quick: *quick, fuzzTime: *fuzzTime}
	results := runStages(ctx, j, chosen)
	return summarise(out, results, getenv("ALLOW_SKIP") == "1")
}

// choose returns the stages to run, or an error naming a stage that does not exist.
func choose(all []stage, quick bool, only string) ([]stage, error) {
	if only == "" {
		var chosen []stage
		for _, s := range all {
			if s.quick || !quick {
				chosen = append(chosen, s)
			}
		}
		return chosen, nil
	}
	var chosen []stage
	for _, name := range strings.Split(only, ",") {
		found := false
		for _, s := range all {
			if s.name == name {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("-only %q: no such stage; there are %s", name, names(all))
		}
	}
	return chosen, nil
}

func names(all []stage) string {
	var list []string
	for _, s := range all {
		list = append(list, s.name)
	}
	return strings.Join(list, ", ")
}

// result is what one stage came to.
type result struct {
	stage string
	took  time.Duration
	tally tally
	err   error
}

func runStages(ctx context.Context, j *job, chosen []stage) []result {
	var results []result
	for _, s := range chosen {
		if ctx.Err() != nil {
			results = append(results, result{stage: s.name, err: context.Cause(ctx)})
			continue
		}
		fmt.Fprintf(j.out, "\n=== %s: %s\n", s.name, s.what)
		j.tally = tally{}
		began := time.Now()
		err := s.run(ctx, j)
		r := result{stage: s.name, took: time.Since(began), tally: j.tally, err: err}
		if err != nil && !errors.Is(err, errNothing) {
			fmt.Fprintf(j.out, "--- %s failed: %v\n", s.name, err)
		}
		results = append(results, r)
	}
	return results
}

// summarise prints the table of stages and the closing line of totals.
func summarise(out io.Writer, results []result, allowSkip bool) error {
	var total tally
	var took time.Duration
	var failed []string
	fmt.Fprintf(out, "\n%-12s %9s %8s %7s %8s  %s\n", "stage", "time", "passed", "failed", "skipped", "result")
	for _, r := range results {
		verdict := "ok"
		switch {
		case errors.Is(r.err, errNothing):
			verdict = "nothing to do"
		case r.err != nil:
			verdict = "FAILED"
			failed = append(failed, r.stage)
			if r.tally.failed == 0 {
				r.tally.failed = 1 // a stage without tests counts as one that failed
			}
		case r.tally.failed > 0:
			verdict = "FAILED"
			failed = append(failed, r.stage)
		}
		fmt.Fprintf(out, "%-12s %8.1fs %8d %7d %8d  %s\n", r.stage, r.took.Seconds(),
			r.tally.passed, r.tally.failed, r.tally.skipped, verdict)
		total.add(r.tally)
		took += r.took
	}
	fmt.Fprintf(out, "%-12s %8.1fs\n\n%s\n", "all", took.Seconds(), total)
	switch {
	case len(failed) > 0:
		return fmt.Errorf("stages: %s", strings.Join(failed, ", "))
	case total.skipped > 0 && !allowSkip:
		return fmt.Errorf("%d tests were skipped; ALLOW_SKIP=1 permits that", total.skipped)
	}
	return nil
}

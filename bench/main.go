// Command bench measures streamproxy beside direct connections and beside other proxies.
//
//	go run ./bench throughput   ops/s, latency and processor time for many loads
//	go run ./bench idle         what an idle proxy adds to one caller, and how long batches wait
//	go run ./bench rate         single commands at a fixed rate, over several round trips
//	go run ./bench large        large values, and small ones beside a giant
//	go run ./bench crowd        memory of many clients, idle and after a burst
//	go run ./bench wide         many keys in one command
//	go run ./bench metrics      what counting costs
//	go run ./bench streams      the experiment of taskiq issue 699, with real workers
//	go run ./bench neighbours   what well-behaved clients wait while others misbehave
//	go run ./bench report       writes docs/benchmarks.md and its pictures from the results
//
// A figure is a ratio of medians: every side stands ready for the whole run and is measured in
// turn, round after round, so that what else the machine does meets them all. With --check the
// ratios are compared with the goals (goals.go) and a missed one makes the exit code 1.
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

	"streamproxy/bench/internal/neighbourlab"
)

// program is one subcommand.
type program struct {
	name string
	run  func(ctx context.Context, args []string, out io.Writer) error
}

var programs = []program{
	{"throughput", throughput},
	{"idle", idle},
	{"rate", rate},
	{"large", large},
	{"crowd", crowd},
	{"wide", wide},
	{"metrics", metrics},
	{"streams", streams},
	{"neighbours", neighbours},
	{"report", report},
}

// errMissed says that a goal was missed; the verdicts have been printed.
var errMissed = errors.New("goals were missed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) { // the flags have been printed
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		if args[0] == neighbourlab.Command { // not for people: neighbours starts itself with it
			return neighbourlab.Child(ctx, args[1:], os.Stdin, out)
		}
		for _, p := range programs {
			if p.name == args[0] {
				return p.run(ctx, args[1:], out)
			}
		}
	}
	names := make([]string, len(programs))
	for i, p := range programs {
		names[i] = p.name
	}
	return fmt.Errorf("usage: go run ./bench %s [flags]; got %q", strings.Join(names, "|"), args)
}

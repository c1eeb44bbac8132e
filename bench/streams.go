package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"streamproxy/bench/internal/lab"
	"streamproxy/bench/internal/result"
	"streamproxy/bench/internal/streamlab"
)

// environments is where the workers' virtual environments are kept between runs.
const environments = ".cache/bench"

// streamOptions are the flags of the streams program.
type streamOptions struct {
	parts, pairs, streams []string
	messages, burst       int
	rounds                int
	gap, span             time.Duration
	folder                string
	check, quick          bool
	args                  string
}

var streamParts = []string{"rows", "poisson", "burst", "cold", "fleet", "recovery"}

func parseStreams(args []string) (streamOptions, error) {
	o := streamOptions{args: strings.Join(args, " ")}
	flags := flag.NewFlagSet("streams", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "short: 5 messages a row, a burst of 200, rows and cold starts of the newest pair; a look, not a result")
	parts := flags.String("parts", strings.Join(streamParts, ","), "what to measure; the other parts of an earlier result are kept")
	pairs := flags.String("pairs", strings.Join(streamlab.PairNames, ","), "versions of taskiq-redis + redis-py")
	streams := flags.String("streams", "1,10,50,161", "numbers of streams of the rows")
	flags.IntVar(&o.messages, "messages", 50, "messages a row; with --gap they make the span in which commands are counted")
	flags.DurationVar(&o.gap, "gap", 1500*time.Millisecond, "time between two messages of a worker")
	flags.IntVar(&o.burst, "burst", 5000, "messages of a burst")
	flags.IntVar(&o.rounds, "rounds", 3, "cold starts of each side")
	flags.DurationVar(&o.span, "span", 165*time.Second, "time in which a fleet's commands are counted")
	flags.StringVar(&o.folder, "out", "bench/results", "folder of the JSON results")
	flags.BoolVar(&o.check, "check", false, "exit 1 if a goal is missed")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if o.quick {
		quicken(&o, given, parts, pairs)
	}
	o.parts, o.pairs, o.streams = strings.Split(*parts, ","), strings.Split(*pairs, ","), strings.Split(*streams, ",")
	for _, p := range o.parts {
		if !slices.Contains(streamParts, p) {
			return o, fmt.Errorf("--parts %q: there are %s", p, strings.Join(streamParts, ", "))
		}
	}
	if o.messages < 1 || o.burst < 1 || o.rounds < 1 || o.gap < time.Second {
		return o, fmt.Errorf("--messages %d, --burst %d, --rounds %d: at least 1; --gap %v: at least 1s", o.messages, o.burst, o.rounds, o.gap)
	}
	return o, nil
}

// quicken lowers what was not given.
func quicken(o *streamOptions, given map[string]bool, parts, pairs *string) {
	if !given["messages"] {
		o.messages = 5
	}
	if !given["burst"] {
		o.burst = 200
	}
	if !given["rounds"] {
		o.rounds = 1
	}
	if !given["parts"] {
		*parts = "rows,cold"
	}
	if !given["pairs"] {
		*pairs = streamlab.PairNames[len(streamlab.PairNames)-1]
	}
}

// streams rebuilds the experiment of taskiq's issue 699.
func streams(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseStreams(args)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "streamproxy-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	binary, err := lab.BuildStreamproxy(ctx, folder)
	if err != nil {
		return err
	}
	l, err := streamlab.Open(ctx, binary, environments, o.pairs, out)
	if err != nil {
		return err
	}
	l.Messages, l.Gap, l.Burst = o.messages, o.gap, o.burst
	report, err := streamlab.Load(o.folder)
	if err != nil {
		return err
	}
	for _, part := range o.parts {
		began := time.Now()
		fmt.Fprintf(out, "measuring %s ...\n", part)
		if err := o.measure(ctx, l, report, part); err != nil {
			return err
		}
		report.Measured[part] = streamlab.Measured{Started: began, Setup: streamSetup(ctx, &o), RealTime: realTime()}
		if _, err := report.Save(o.folder); err != nil { // what is done is not lost with a later part
			return err
		}
	}
	report.Markdown(out)
	verdicts := judgeStreams(report)
	writeVerdicts(out, verdicts)
	if o.check && anyMissed(verdicts) {
		return errMissed
	}
	return nil
}

// measure does one part and puts it into the report.
func (o *streamOptions) measure(ctx context.Context, l *streamlab.Lab, r *streamlab.Report, part string) (err error) {
	switch part {
	case "rows":
		for _, text := range o.streams {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > 1000 {
				return fmt.Errorf("--streams %q: 1 to 1000", text)
			}
			rows, err := l.Rows(ctx, n, streamlab.Steady)
			if err != nil {
				return err
			}
			r.Replace(rows)
		}
	case "poisson":
		rows, err := l.Rows(ctx, streamlab.ManyStreams, streamlab.Poisson)
		if err != nil {
			return err
		}
		r.Replace(rows)
	case "burst":
		r.Bursts, err = l.Bursts(ctx)
	case "cold":
		r.Colds, err = l.ColdStarts(ctx, o.rounds)
	case "fleet":
		r.Fleets, err = l.Fleets(ctx, []int{1, 3, 10}, o.span)
	case "recovery":
		r.Recoveries, err = l.Recoveries(ctx)
	}
	return err
}

func streamSetup(ctx context.Context, o *streamOptions) result.Setup {
	redis := "unknown"
	if text, err := exec.CommandContext(ctx, "redis-server", "--version").Output(); err == nil {
		redis = strings.TrimSpace(string(text))
	}
	return result.Setup{
		Revision: revision(), Go: runtime.Version(), System: system(), CPU: cpuModel(),
		Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Flags: o.args, Rounds: o.rounds, Redis: redis,
	}
}

// realTime reports whether this process, and so all that it starts, is scheduled in real time.
func realTime() bool {
	policy, err := unix.SchedGetAttr(0, 0)
	return err == nil && (policy.Policy == unix.SCHED_RR || policy.Policy == unix.SCHED_FIFO)
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"streamproxy/bench/internal/lab"
	"streamproxy/bench/internal/result"
)

// options are what the measuring programs have in common.
type options struct {
	rounds   int
	duration time.Duration // counted, per side and round
	warmup   time.Duration // before it
	sides    []string
	folder   string // of the results
	check    bool
	args     string // as given, for the report
}

// minRounds is the least that a median with a spread can be told from.
const minRounds = 5

// parse reads a program's flags. Defaults that --quick lowers are taken from it only where the
// flag itself was not given.
func parse(name string, args []string, defaultSides []string, more func(*flag.FlagSet)) (options, error) {
	o := options{args: strings.Join(args, " ")}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	quick := flags.Bool("quick", false, "short: 0.5 s and 3 rounds per side, fewer cells; a look, not a result")
	flags.IntVar(&o.rounds, "rounds", minRounds, "rounds in which the sides are measured in turn")
	flags.DurationVar(&o.duration, "duration", 2*time.Second, "counted time per side and round")
	flags.DurationVar(&o.warmup, "warmup", 300*time.Millisecond, "time before it that is not counted")
	sides := flags.String("sides", strings.Join(defaultSides, ","), "what to compare; streamproxy takes flags: streamproxy:max-flush-delay=0:threads=2")
	flags.StringVar(&o.folder, "out", "bench/results", "folder of the JSON results")
	flags.BoolVar(&o.check, "check", false, "compare with the goals; exit 1 if a binding one is missed")
	if more != nil {
		more(flags)
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if *quick && !given["rounds"] {
		o.rounds = 3
	}
	if *quick && !given["duration"] {
		o.duration = 500 * time.Millisecond
	}
	o.sides = strings.Split(*sides, ",")
	return o, o.validate(flags.Args(), *quick)
}

func (o *options) validate(rest []string, quick bool) error {
	var faults []error
	if len(rest) > 0 {
		faults = append(faults, fmt.Errorf("unexpected arguments %q", rest))
	}
	if o.rounds < 1 {
		faults = append(faults, fmt.Errorf("--rounds %d: at least 1", o.rounds))
	}
	if o.check && !quick && o.rounds < minRounds {
		faults = append(faults, fmt.Errorf("--rounds %d: a check needs at least %d", o.rounds, minRounds))
	}
	if o.duration < 100*time.Millisecond {
		faults = append(faults, fmt.Errorf("--duration %v: at least 100ms, processor time comes in ticks of 10ms", o.duration))
	}
	return errors.Join(faults...)
}

// newReport begins a report with what is known before the first round.
func newReport(name string, o *options, l *lab.Lab) *result.Report {
	r := &result.Report{
		Program: name,
		Started: time.Now(),
		Missing: l.Missing,
		Setup: result.Setup{
			Revision: revision(), Go: runtime.Version(), System: system(), CPU: cpuModel(),
			Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
			Flags: o.args, Rounds: o.rounds, Redis: l.RedisVersion,
		},
	}
	for _, s := range l.Sides {
		r.Sides = append(r.Sides, result.SideInfo{Name: s.Name, Kind: s.Kind, Version: s.Version, Command: s.Command})
	}
	return r
}

// revision is the commit that is measured, with a mark if files differ from it.
func revision() string {
	text, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=10").Output()
	if err == nil {
		return strings.TrimSpace(string(text))
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

func system() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return runtime.GOOS
	}
	return unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:]) + " " + runtime.GOARCH
}

// finish saves a report and, if asked, judges it.
func finish(r *result.Report, o *options, out io.Writer) error {
	path, err := r.Save(o.folder)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nwritten to %s\n", path)
	verdicts := judge(r)
	writeVerdicts(out, verdicts)
	if o.check && anyMissed(verdicts) {
		return errMissed
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"streamproxy/internal/config"
)

// process is what a command gets from the operating system. environ is the whole
// environment, not a look-up, because unknown variables of ours are warned of.
type process struct {
	environ        []string
	stdout, stderr io.Writer
}

// command is one subcommand. The first one runs when none is named.
type command struct {
	name    string
	args    string // for the usage
	summary string
	run     func(ctx context.Context, args []string, p process) error
	// own makes the flags of the subcommand alone, for completion; nil: there are none.
	own func() *flag.FlagSet
	// proxyFlags: it takes those of the proxy too. words are what else may follow.
	proxyFlags bool
	words      []string
}

// commands is the table of subcommands.
func commands() []command {
	return []command{
		{name: "", args: "[flags]", summary: "run the proxy", run: serve, proxyFlags: true},
		{name: "demo", args: "[--duration 15s] [--upstream URL]", run: showDemo, own: new(demoOptions).flags,
			summary: "show direct and proxied clients side by side, with an embedded server or URL's"},
		{name: "check", args: "[--dial] [flags]", run: check, own: new(checkOptions).flags, proxyFlags: true,
			summary: "validate the configuration and print it; --dial also greets the server"},
		{name: "healthcheck", args: "[--url URL]", run: healthcheck, own: new(healthcheckOptions).flags,
			summary: "ask a running proxy whether it lives; exit code 0 or 1"},
		{name: "wait", args: "[--for drained|ready|started] [--timeout 30s]", run: wait, own: new(waitOptions).flags,
			summary: "return when the proxy beside is ready, or started, or has ended"},
		{name: "top", args: "[-o -] [--interval 1s]", run: showTop, own: new(topOptions).flags,
			summary: "show what a running proxy does, until q is pressed; -o - prints it once"},
		{name: "version", summary: "print the version", run: printVersion},
		{name: "completion", args: "bash|fish|zsh", run: complete, words: shellNames(),
			summary: "print what makes a shell complete commands and flags"},
		{name: "docs", args: "--out DIR", run: writeDocs, own: new(docsOptions).flags, summary: "write flags.md and metrics.md"},
	}
}

// run finds the subcommand and runs it. Asking for help is no error.
func run(ctx context.Context, args []string, p process) error {
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	for _, c := range commands() {
		if c.name == name {
			return helped(c, c.run(ctx, args, p), p.stdout)
		}
	}
	if name == "help" {
		usage(p.stdout)
		return nil
	}
	return config.Faults{{Name: "command", Value: config.HideUserinfo(name), Problem: "is not one of streamproxy's; --help lists them"}}
}

// helped prints the help that a subcommand was asked for: its own flags, or the whole page
// where it takes the proxy's. Any other error stays.
func helped(c command, err error, w io.Writer) error {
	var own *ownHelp
	switch {
	case errors.As(err, &own):
		fmt.Fprintf(w, "Usage: %s\n\n%s\n", c.line(), c.summary)
		own.flags.SetOutput(w)
		own.flags.PrintDefaults()
	case errors.Is(err, config.ErrHelp):
		usage(w)
	default:
		return err
	}
	return nil
}

// ownHelp is the wish for help with the flags of one subcommand.
type ownHelp struct{ flags *flag.FlagSet }

func (*ownHelp) Error() string { return config.ErrHelp.Error() }

// line is the command as one types it.
func (c command) line() string {
	return strings.Join(strings.Fields("streamproxy "+c.name+" "+c.args), " ")
}

// usage prints every subcommand and every flag.
func usage(w io.Writer) {
	fmt.Fprint(w, "streamproxy shares few Redis connections among many clients.\n\nUsage:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-50s %s\n", c.line(), c.summary)
	}
	fmt.Fprint(w, "\nA flag wins over its environment variable, a variable over the default.\n")
	config.WriteHelp(w, machine())
	fmt.Fprint(w, "\nExit codes: 0 everything was answered, 2 faulty configuration, 3 commands were left\nunanswered by the drain, or clients had not stopped sending, 1 anything else.\n")
}

// machine reads what this process may use. NumCPU respects the processor affinity.
func machine() config.Machine {
	return config.ReadMachine(os.DirFS("/"), runtime.NumCPU())
}

// parseOwn parses the arguments of a subcommand that takes no flags of the proxy.
func parseOwn(set *flag.FlagSet, args []string) error {
	set.SetOutput(io.Discard)
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return &ownHelp{set}
	case err != nil:
		return config.Faults{{Name: set.Name(), Problem: err.Error(), Err: err}}
	case set.NArg() > 0:
		return config.Faults{{Name: set.Name(), Value: set.Arg(0), Problem: "is not a flag"}}
	}
	return nil
}

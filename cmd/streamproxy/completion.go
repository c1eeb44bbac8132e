package main

import (
	"context"
	"flag"
	"io"
	"maps"
	"slices"
	"strings"

	"streamproxy/internal/config"
)

// shells is the writers of completion scripts.
var shells = map[string]func(w io.Writer, all []completable){
	"bash": writeBash, "fish": writeFish, "zsh": writeZsh,
}

func shellNames() []string { return slices.Sorted(maps.Keys(shells)) }

// complete is the command that prints what makes a shell complete commands and flags.
// It is written from the tables by which these are parsed and explained.
func complete(_ context.Context, args []string, p process) error {
	set := flag.NewFlagSet("completion", flag.ContinueOnError)
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	if err := parseOwn(set, args); err != nil {
		return err
	}
	write, known := shells[name]
	if !known {
		return config.Faults{{Name: "completion", Value: name, Problem: "is no shell that is known here", Bound: strings.Join(shellNames(), ", ")}}
	}
	write(p.stdout, completables())
	return nil
}

// completable is a subcommand as the shells know it; the one that runs when none is
// named has no name.
type completable struct {
	name, summary string
	flags         []completableFlag
	words         []string // what else may follow
}

// completableFlag is a flag as the shells know it.
type completableFlag struct {
	name, arg, help string
	alone           bool // needs no value
	repeatable      bool
	words           []string // its values, where there are but a few
}

// dashed is the flag as it is typed.
func (f completableFlag) dashed() string {
	if len(f.name) == 1 {
		return "-" + f.name
	}
	return "--" + f.name
}

// paths reports whether the value is the name of a file or folder.
func (f completableFlag) paths() bool { return f.arg == "PATH" || f.arg == "DIR" }

// completables is the table of subcommands with their flags.
func completables() []completable {
	var all []completable
	for _, c := range commands() {
		one := completable{name: c.name, summary: c.summary, words: c.words}
		if c.own != nil {
			c.own().VisitAll(func(f *flag.Flag) { one.flags = append(one.flags, ownFlag(f)) })
		}
		if c.proxyFlags {
			one.flags = append(one.flags, proxyFlags()...)
		}
		one.flags = append(one.flags, completableFlag{name: "help", alone: true, help: "Print what there is."})
		all = append(all, one)
	}
	return all
}

// ownFlag is a flag of a subcommand.
func ownFlag(f *flag.Flag) completableFlag {
	one := completableFlag{name: f.Name}
	one.arg, one.help = flag.UnquoteUsage(f)
	one.help = sentence(one.help)
	if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok {
		one.alone = b.IsBoolFlag()
	}
	if c, ok := f.Value.(*choice); ok {
		one.words = c.words
	}
	return one
}

// sentence makes a help text of a usage.
func sentence(usage string) string {
	if usage == "" {
		return ""
	}
	return strings.ToUpper(usage[:1]) + usage[1:] + "."
}

// proxyFlags is the flags of the proxy.
func proxyFlags() []completableFlag {
	var list []completableFlag
	c := config.Default(config.Machine{})
	for _, g := range config.Groups(&c) {
		for _, f := range g.Flags {
			list = append(list, completableFlag{name: f.Name, arg: f.Arg, help: f.Help,
				alone: f.Alone(), repeatable: f.Repeatable(), words: f.Words()})
		}
	}
	return list
}

// named lists the subcommands that have a name.
func named(all []completable) []completable {
	return slices.DeleteFunc(slices.Clone(all), func(c completable) bool { return c.name == "" })
}

// unnamed is the subcommand that runs when none is named.
func unnamed(all []completable) completable {
	return all[slices.IndexFunc(all, func(c completable) bool { return c.name == "" })]
}

// brief is the first sentence of a help text, without its full stop.
func brief(help string) string {
	first, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(first, ".")
}

// quoted makes one word of a shell of a text, which may have anything in it.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// wordsOf lists what may stand where c is the subcommand: flags, and whatever else.
func wordsOf(c completable) []string {
	list := slices.Clone(c.words)
	for _, f := range c.flags {
		list = append(list, f.dashed())
	}
	return list
}

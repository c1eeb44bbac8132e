package main

import (
	"fmt"
	"io"
	"strings"
)

// writeFish writes for fish, which is told of each word by itself.
func writeFish(w io.Writer, all []completable) {
	fmt.Fprint(w, "# Completion of streamproxy for fish: streamproxy completion fish | source\n")
	fmt.Fprint(w, "complete -c streamproxy -f\n")
	var known []string
	for _, c := range named(all) {
		known = append(known, c.name)
		fmt.Fprintf(w, "complete -c streamproxy -n __fish_use_subcommand -a %s -d %s\n", c.name, fishQuoted(c.summary))
	}
	for _, c := range all {
		when := "__fish_seen_subcommand_from " + c.name
		if c.name == "" {
			when = "not __fish_seen_subcommand_from " + strings.Join(known, " ")
		}
		if len(c.words) > 0 {
			fmt.Fprintf(w, "complete -c streamproxy -n '%s' -a %s\n", when, fishQuoted(strings.Join(c.words, " ")))
		}
		for _, f := range c.flags {
			fmt.Fprintf(w, "complete -c streamproxy -n '%s' %s -d %s\n", when, fishFlag(f), fishQuoted(brief(f.help)))
		}
	}
}

// fishFlag is the options that tell of a flag.
func fishFlag(f completableFlag) string {
	s := "-l " + f.name
	if len(f.name) == 1 {
		s = "-s " + f.name
	}
	switch {
	case f.alone:
	case f.paths():
		s += " -r -F"
	case len(f.words) > 0:
		s += " -x -a " + fishQuoted(strings.Join(f.words, " "))
	default:
		s += " -x"
	}
	return s
}

// fishQuoted makes one word of a text.
func fishQuoted(text string) string {
	return "'" + strings.NewReplacer("\\", "\\\\", "'", "\\'").Replace(text) + "'"
}

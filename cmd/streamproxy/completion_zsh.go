package main

import (
	"fmt"
	"io"
	"strings"
)

// writeZsh writes for zsh, as a file of its $fpath or to be sourced.
func writeZsh(w io.Writer, all []completable) {
	fmt.Fprint(w, "#compdef streamproxy\n# Completion of streamproxy for zsh: source <(streamproxy completion zsh)\n_streamproxy() {\n\tlocal -a commands=(\n")
	for _, c := range named(all) {
		fmt.Fprintf(w, "\t\t%s\n", quoted(c.name+":"+strings.ReplaceAll(c.summary, ":", "\\:")))
	}
	fmt.Fprint(w, "\t)\n\tif (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tcase $words[2] in\n")
	for _, c := range named(all) {
		fmt.Fprintf(w, "\t%s)\n\t\tshift words\n\t\t(( CURRENT-- ))\n", c.name)
		zshArguments(w, c)
	}
	fmt.Fprint(w, "\t*)\n")
	zshArguments(w, unnamed(all))
	fmt.Fprint(w, "\tesac\n}\nif [[ $funcstack[1] == _streamproxy ]]; then\n\t_streamproxy \"$@\"\nelse\n\tcompdef _streamproxy streamproxy\nfi\n")
}

// zshArguments writes what may follow a subcommand.
func zshArguments(w io.Writer, c completable) {
	fmt.Fprint(w, "\t\t_arguments")
	for _, f := range c.flags {
		fmt.Fprintf(w, " \\\n\t\t\t%s", quoted(zshFlag(f)))
	}
	if len(c.words) > 0 {
		fmt.Fprintf(w, " \\\n\t\t\t%s", quoted("1:word:("+strings.Join(c.words, " ")+")"))
	}
	fmt.Fprint(w, "\n\t\t;;\n")
}

// zshFlag tells of a flag in the language of _arguments.
func zshFlag(f completableFlag) string {
	s := f.dashed()
	if f.repeatable {
		s = "*" + s
	}
	if !f.alone && len(f.name) > 1 {
		s += "="
	}
	s += "[" + strings.NewReplacer("[", "\\[", "]", "\\]", ":", "\\:").Replace(brief(f.help)) + "]"
	switch {
	case f.alone:
	case f.paths():
		s += ":" + f.arg + ":_files"
	case len(f.words) > 0:
		s += ":word:(" + strings.Join(f.words, " ") + ")"
	default:
		s += ":" + f.arg + ": "
	}
	return s
}

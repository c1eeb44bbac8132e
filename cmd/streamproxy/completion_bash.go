package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

const bashHead = `# Completion of streamproxy for bash: source <(streamproxy completion bash)
_streamproxy() {
	local cur=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]} command= words= paths=
	if [[ $cur == = ]]; then
		cur=
	elif [[ $flag == = ]]; then
		flag=${COMP_WORDS[COMP_CWORD-2]}
	fi
	if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]]; then
		command=${COMP_WORDS[1]}
	fi
	case "$command $flag" in
`

const bashEnd = `	esac
	if [[ -n $paths ]]; then
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$cur"))
	else
		COMPREPLY=($(compgen -W "$words" -- "$cur"))
	fi
}
complete -F _streamproxy streamproxy
`

// writeBash writes for bash, which splits words at = and leaves it to the script to see
// them as one.
func writeBash(w io.Writer, all []completable) {
	fmt.Fprint(w, bashHead)
	for _, c := range all {
		for _, f := range c.flags {
			pattern := quoted(c.name + " " + f.dashed())
			switch {
			case f.alone:
			case f.paths():
				fmt.Fprintf(w, "\t%s) paths=1 ;;\n", pattern)
			case len(f.words) > 0:
				fmt.Fprintf(w, "\t%s) words=%s ;;\n", pattern, quoted(strings.Join(f.words, " ")))
			default: // whatever the user likes
				fmt.Fprintf(w, "\t%s) ;;\n", pattern)
			}
		}
	}
	for _, c := range named(all) {
		fmt.Fprintf(w, "\t%s*) words=%s ;;\n", quoted(c.name+" "), quoted(strings.Join(wordsOf(c), " ")))
	}
	var first []string
	for _, c := range named(all) {
		first = append(first, c.name)
	}
	first = slices.Concat(first, wordsOf(unnamed(all)))
	fmt.Fprintf(w, "\t' '*) words=%s ;;\n", quoted(strings.Join(first, " ")))
	fmt.Fprint(w, bashEnd)
}

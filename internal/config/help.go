package config

import (
	"fmt"
	"io"
	"strings"
)

// helpWidth is the column at which help breaks lines.
const helpWidth = 88

// WriteHelp writes every flag under its heading, with bounds, default and variable.
func WriteHelp(w io.Writer, m Machine) {
	c := Default(m)
	for _, g := range Groups(&c) {
		fmt.Fprintf(w, "\n%s:\n", g.Title)
		for _, f := range g.Flags {
			fmt.Fprintf(w, "  --%s %s\n", f.Name, f.Arg)
			for _, line := range wrap(f.Help, helpWidth-8) {
				fmt.Fprintf(w, "        %s\n", line)
			}
			fmt.Fprintf(w, "        %s\n", f.facts())
		}
	}
}

// facts is the last line of a flag's help.
func (f Flag) facts() string {
	s := "default " + orNone(f.Text())
	if b := f.Bound(); b != "" {
		s += "; " + b
	}
	return s + "; " + f.Env()
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// wrap breaks text at blanks into lines of at most width bytes where words allow.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// WriteEffective writes the configuration in force as one flag a line, fit to be
// read by people and given back as arguments. Secrets are hidden, and what the
// process chose itself stands behind it.
func (c *Config) WriteEffective(w io.Writer) {
	for _, f := range flags(c) {
		line := "--" + f.Name + "=" + f.Text()
		if chosen := c.chosen(f.Name); chosen != "" {
			line = fmt.Sprintf("%-40s # %s", line, chosen)
		}
		fmt.Fprintln(w, line)
	}
}

// chosen is the value behind an auto, where it is known before anything is dialled.
func (c *Config) chosen(flag string) string {
	switch {
	case flag == "memory-limit" && c.MemoryLimit.Auto:
		return formatSize(c.MemoryLimit.Value) + " here"
	case flag == "threads" && c.Threads.Auto:
		return formatInt(c.Threads.Value) + " here"
	}
	return ""
}

const markdownHead = `# Flags

Generated from the table of flags by ` + "`make docs`" + `; do not edit.

Every flag can be given as an environment variable. A flag wins over its variable, a
variable over the default; an empty variable counts as unset. Lists are separated by
commas, or by semicolons where the flag says so. Sizes take the units b, k, m, g (powers of 1000) and kb, mb, gb (powers of
1024); durations us, ms, s, m, h. All faults are reported at once, with exit code 2.
`

// WriteMarkdown writes docs/flags.md. It does not depend on the machine.
func WriteMarkdown(w io.Writer) {
	c := Default(Machine{})
	fmt.Fprint(w, markdownHead)
	for _, g := range Groups(&c) {
		fmt.Fprintf(w, "\n## %s\n\n| flag | default | accepts | |\n|---|---|---|---|\n", g.Title)
		for _, f := range g.Flags {
			fmt.Fprintf(w, "| `--%s` %s<br>`%s` | %s | %s | %s |\n",
				f.Name, f.Arg, f.Env(), codeOrNone(f.Text()), f.Bound(), strings.ReplaceAll(f.Help, "|", "\\|"))
		}
	}
}

func codeOrNone(text string) string {
	if text == "" {
		return "none"
	}
	return "`" + text + "`"
}

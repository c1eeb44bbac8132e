package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// coverage is which of a server's commands and options a run has sent, and which the server has
// accepted: answered with anything but an error.
type coverage struct {
	specs          map[string]*spec
	tokens         map[string][]string // by full name: the words of its options, in lower case
	sent, accepted map[string]int      // by full name, and by full name, space and token
}

func newCoverage(specs []spec) *coverage {
	c := &coverage{specs: map[string]*spec{}, tokens: map[string][]string{}, sent: map[string]int{}, accepted: map[string]int{}}
	for i := range specs {
		s := &specs[i]
		c.specs[s.full()] = s
		c.tokens[s.full()] = tokensOf(s.args)
	}
	return c
}

// tokensOf lists the words that options are named by, at any depth.
func tokensOf(args []argument) (tokens []string) {
	for _, a := range args {
		if t := strings.ToLower(a.token); t != "" && !slices.Contains(tokens, t) {
			tokens = append(tokens, t)
		}
		tokens = append(tokens, tokensOf(a.args)...)
	}
	slices.Sort(tokens)
	return slices.Compact(tokens)
}

// heard books what a script has brought. Replies are those of commands in their order unless a pipe
// brought less or more of them than it has commands: then nothing is said of its acceptance.
func (c *coverage) heard(outcomes []outcome) {
	for _, o := range outcomes {
		var replies []string
		for _, f := range o.frames {
			if !aside(f) {
				replies = append(replies, f)
			}
		}
		paired := len(replies) == len(o.pipe) || len(replies) == len(o.pipe)+1
		for i, op := range o.pipe {
			c.book(op.words(), paired && strings.IndexByte("-!", replies[i][0]) < 0)
		}
	}
}

func (c *coverage) book(args []string, accepted bool) {
	name := c.nameOf(args)
	if name == "" {
		return
	}
	keys := []string{name}
	for _, t := range c.tokens[name] {
		if slices.ContainsFunc(args[1:], func(a string) bool { return strings.EqualFold(a, t) }) {
			keys = append(keys, name+" "+t)
		}
	}
	for _, k := range keys {
		c.sent[k]++
		if accepted {
			c.accepted[k]++
		}
	}
}

// nameOf is the full name of a command, "" if the server knows none such.
func (c *coverage) nameOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	name := strings.ToLower(args[0])
	if c.specs[name] != nil {
		return name
	}
	if len(args) > 1 {
		if name += "|" + strings.ToLower(args[1]); c.specs[name] != nil {
			return name
		}
	}
	return ""
}

// missing lists the commands, and the options of commands, that counts has none of.
func (c *coverage) missing(counts map[string]int) (commands, options []string) {
	for _, name := range slices.Sorted(maps.Keys(c.specs)) {
		if counts[name] == 0 {
			commands = append(commands, name)
			continue
		}
		for _, t := range c.tokens[name] {
			if counts[name+" "+t] == 0 {
				options = append(options, name+" "+t)
			}
		}
	}
	return commands, options
}

// String says how much was covered and what was not.
func (c *coverage) String() string {
	var b strings.Builder
	all := 0
	for _, t := range c.tokens {
		all += len(t)
	}
	for _, part := range []struct {
		what   string
		counts map[string]int
	}{{"sent", c.sent}, {"accepted", c.accepted}} {
		commands, options := c.missing(part.counts)
		hidden := 0 // options of the commands that are missing altogether
		for _, name := range commands {
			hidden += len(c.tokens[name])
		}
		fmt.Fprintf(&b, "%s: %d of %d commands, %d of %d options\n  commands never %s: %s\n  options never %s: %s\n",
			part.what, len(c.specs)-len(commands), len(c.specs), all-hidden-len(options), all,
			part.what, strings.Join(commands, " "), part.what, strings.Join(options, ", "))
	}
	return b.String()
}

package differential

import (
	"fmt"
	"strconv"
	"strings"
)

// The text form of a script: one op a line, each argument a quoted Go string, and the cuts of a
// pipe in front of its first op.
//
//	cuts 3 17 40
//	do conn=0 pipe=3 round=2 "SET" "k" "v"

// String returns the script's text form.
func (s script) String() string {
	var b strings.Builder
	told := map[int]bool{}
	for _, o := range s.ops {
		if cuts := s.cuts[o.pipe]; len(cuts) > 0 && !told[o.pipe] {
			told[o.pipe] = true
			fmt.Fprintf(&b, "cuts %d", o.pipe)
			for _, c := range cuts {
				fmt.Fprintf(&b, " %d", c)
			}
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s conn=%d pipe=%d round=%d", o.verb, o.conn, o.pipe, o.round)
		for _, a := range o.args {
			fmt.Fprintf(&b, " %q", a)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// readScript is the reverse of String.
func readScript(text string) (script, error) {
	s := script{cuts: map[int][]int{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.readLine(line); err != nil {
			return s, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return s, nil
}

func (s *script) readLine(line string) error {
	if list, ok := strings.CutPrefix(line, "cuts "); ok {
		return s.readCuts(strings.Fields(list))
	}
	var o op
	var name string
	head, quoted, found := strings.Cut(line, ` "`)
	if _, err := fmt.Sscanf(head, "%s conn=%d pipe=%d round=%d", &name, &o.conn, &o.pipe, &o.round); err != nil {
		return err
	}
	o.verb = verb(name)
	if found {
		quoted = `"` + quoted
	}
	for quoted != "" {
		prefix, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			return fmt.Errorf("%w: %.40s", err, quoted)
		}
		arg, err := strconv.Unquote(prefix)
		if err != nil {
			return err
		}
		o.args = append(o.args, arg)
		quoted = strings.TrimLeft(quoted[len(prefix):], " ")
	}
	s.ops = append(s.ops, o)
	return nil
}

func (s *script) readCuts(list []string) error {
	all := make([]int, len(list))
	for i, text := range list {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		all[i] = n
	}
	if len(all) > 0 {
		s.cuts[all[0]] = all[1:]
	}
	return nil
}

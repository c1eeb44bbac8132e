package differential

import (
	"strings"

	"streamproxy/internal/redistest"
	"streamproxy/internal/resp"
)

// verb says what an op does.
type verb string

const (
	// do sends a command and reads what it brings.
	do verb = "do"
	// inline sends one line in the inline form.
	inline verb = "inline"
	// last sends bytes after which the server is to close: it is read to the end.
	last verb = "last"
	// park sends a command that blocks, and goes on when the server says that it does.
	park verb = "park"
	// collect reads what a parked command brings.
	collect verb = "collect"
	// drop closes the connection.
	drop verb = "drop"
)

// op is one thing that one connection does.
type op struct {
	conn int
	// pipe numbers pipelines: neighbouring ops of the same pipe leave in one piece, and their
	// replies are awaited together.
	pipe int
	// round numbers the pipelines under way at a time: neighbouring pipes of the same round are all
	// sent before the first is read.
	round int
	verb  verb
	args  []string // for inline, and for last if there is one: the bytes, in one piece
}

// bytes is what the op sends.
func (o op) bytes() string {
	switch o.verb {
	case inline:
		return o.args[0] + "\r\n"
	case last:
		if len(o.args) == 1 {
			return o.args[0]
		}
	case collect, drop:
		return ""
	}
	return redistest.Command(o.args...)
}

// words is the command as the server will see it, nil if it is none.
func (o op) words() []string {
	switch o.verb {
	case inline:
		return words(o.args[0])
	case last:
		if len(o.args) == 1 {
			return nil
		}
	case collect, drop:
		return nil
	}
	return o.args
}

// words splits a line as the server splits inline commands.
func words(line string) []string {
	raw, spans, err := resp.AppendInline(nil, nil, []byte(line))
	if err != nil {
		return nil
	}
	args := make([]string, len(spans))
	for i, s := range spans {
		args[i] = string(raw[s.Start:s.End])
	}
	return args
}

// script is what is played on both sides.
type script struct {
	ops []op
	// cuts says where the bytes of a pipe are split into several writes: positions, taken modulo
	// the pipe's length so that they keep a meaning while a script shrinks.
	cuts map[int][]int
}

// pipes groups the ops into what is sent in one piece.
func (s script) pipes() [][]op {
	return grouped(s.ops, func(a, b op) bool {
		return a.conn == b.conn && a.pipe == b.pipe && mixes(a.verb) && mixes(b.verb)
	})
}

// mixes tells verbs that may share a pipe.
func mixes(v verb) bool { return v == do || v == inline }

// rounds groups pipes into what is under way at a time.
func (s script) rounds() [][][]op {
	var rounds [][][]op
	for _, p := range s.pipes() {
		if n := len(rounds); n > 0 && joins(rounds[n-1], p) {
			rounds[n-1] = append(rounds[n-1], p)
			continue
		}
		rounds = append(rounds, [][]op{p})
	}
	return rounds
}

func joins(round [][]op, p []op) bool {
	if round[0][0].round != p[0].round || !mixes(p[0].verb) || !mixes(round[0][0].verb) {
		return false
	}
	for _, other := range round {
		if other[0].conn == p[0].conn {
			return false
		}
	}
	return true
}

// grouped splits a list wherever two neighbours are not together.
func grouped(ops []op, together func(a, b op) bool) [][]op {
	var groups [][]op
	for i, o := range ops {
		if i > 0 && together(ops[i-1], o) {
			groups[len(groups)-1] = append(groups[len(groups)-1], o)
			continue
		}
		groups = append(groups, []op{o})
	}
	return groups
}

// commands counts what a script sends.
func (s script) commands() int {
	n := 0
	for _, o := range s.ops {
		if o.verb != collect && o.verb != drop {
			n++
		}
	}
	return n
}

// pieces splits the bytes of a pipe where the script says.
func (s script) pieces(pipe int, raw string) []string {
	at := make(map[int]bool)
	for _, c := range s.cuts[pipe] {
		if len(raw) > 1 {
			at[1+c%(len(raw)-1)] = true
		}
	}
	if len(at) == 0 {
		return []string{raw}
	}
	var pieces []string
	from := 0
	for i := 1; i < len(raw); i++ {
		if at[i] {
			pieces = append(pieces, raw[from:i])
			from = i
		}
	}
	return append(pieces, raw[from:])
}

// named reports whether a command has one of the names, in any case.
func named(args []string, names ...string) bool {
	for _, n := range names {
		if len(args) > 0 && strings.EqualFold(args[0], n) {
			return true
		}
	}
	return false
}

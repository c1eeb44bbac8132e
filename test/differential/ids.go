package differential

import (
	"slices"
	"strconv"
	"strings"
)

// The ids of connections differ between the sides. A script names them by placeholders, which each
// player fills with what CLIENT ID has told its own connection.

// idOf stands for the id of a connection.
func idOf(conn int) string { return "{id:" + strconv.Itoa(conn) + "}" }

// asked lists the connections whose ids an op names.
func (o op) asked() []int {
	var conns []int
	for _, a := range o.args {
		rest, found := strings.CutPrefix(a, "{id:")
		if !found {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSuffix(rest, "}")); err == nil {
			conns = append(conns, n)
		}
	}
	return conns
}

// filled returns an op with ids in place of their placeholders.
func (o op) filled(id func(conn int) string) op {
	if len(o.asked()) == 0 {
		return o
	}
	args := make([]string, len(o.args))
	copy(args, o.args)
	for _, conn := range o.asked() {
		for i := range args {
			if args[i] == idOf(conn) {
				args[i] = id(conn)
			}
		}
	}
	o.args = args
	return o
}

// asks reports whether a script names ids.
func (s script) asks() bool {
	return slices.ContainsFunc(s.ops, func(o op) bool { return len(o.asked()) > 0 })
}

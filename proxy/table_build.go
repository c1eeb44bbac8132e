package proxy

import (
	"strings"

	"streamproxy/internal/resp"
)

// buildDefault makes the table from the lists of table_commands.go.
func buildDefault() *Table {
	t := &Table{commands: make(map[string]*entry, 400)}
	t.add(sharedReads, entry{Route: sharedRead})
	t.add(sharedWrites, entry{Route: sharedWrite})
	for _, g := range ownHandling {
		t.add(g.names, entry{Route: g.route})
	}
	for _, g := range byArguments {
		t.add(g.names, entry{Route: g.route, refine: g.refine})
	}
	for _, c := range containers {
		t.add(c.name, entry{Route: c.bare, refine: (*entry).subcommand, subs: subcommands(c.subs), other: c.other})
	}
	t.index = newIndex(t.commands)
	return t
}

// add enters every name of a list. A name in two lists is a mistake in this
// program, found at its first start and by any test.
func (t *Table) add(names string, e entry) {
	for name := range strings.FieldsSeq(names) {
		if _, twice := t.commands[name]; twice {
			panic("command table lists " + name + " twice")
		}
		t.commands[name] = &e
	}
}

// subcommands spreads a container's groups into one map.
func subcommands(groups []group) map[string]Route {
	subs := map[string]Route{}
	for _, g := range groups {
		for name := range strings.FieldsSeq(g.names) {
			if _, twice := subs[name]; twice {
				panic("command table lists subcommand " + name + " twice")
			}
			subs[name] = g.route
		}
	}
	return subs
}

// subcommand routes a container by its second word.
func (e *entry) subcommand(c resp.Command) Route {
	if c.Len() < 2 {
		return e.Route
	}
	var buf [maxNameLen]byte
	if name, ok := lowered(&buf, c.Arg(1)); ok {
		if r, ok := e.subs[string(name)]; ok {
			return r
		}
	}
	return e.other
}

// readsBlocking routes XREAD and XREADGROUP: private with BLOCK, also if its
// value is bad (the server says so), and with an option that is not known here
// and may hide one.
func (e *entry) readsBlocking(c resp.Command) Route {
	if s := scanRead(c); s.block == 0 && !s.odd {
		return Route{Class: ClassShared, Write: e.Write}
	}
	return e.Route
}

// flushes routes FLUSHALL and its kind. From Redis 7.4 on one without ASYNC
// keeps its client waiting for a background thread while others are served.
func (e *entry) flushes(c resp.Command) Route {
	if c.Len() > 1 && fold(c.Arg(c.Len()-1), "async") {
		return sharedWrite
	}
	return e.Route
}

// addsVector routes VADD, which with CAS hands the search to a thread and
// keeps its client waiting. An element of that name only costs sharing.
func (e *entry) addsVector(c resp.Command) Route {
	if hasOption(c, "cas") {
		return Route{Class: ClassBlocking, Write: true}
	}
	return e.Route
}

// informs routes INFO: the proxy's own section is answered here if asked for
// alone, everything else is the server's.
func (e *entry) informs(c resp.Command) Route {
	if c.Len() == 2 && fold(c.Arg(1), "streamproxy") {
		return Route{Class: ClassLocal, Verb: VerbProxyInfo}
	}
	return e.Route
}

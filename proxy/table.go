package proxy

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
)

// maxNameLen bounds the names that the table can hold. Redis's longest is 20.
const maxNameLen = 32

// Table classifies commands. It is immutable and safe for concurrent use; the
// With methods return a changed copy.
//
// The compiled-in table knows Redis to 8.8 and Valkey to 9.1. Whatever it does
// not list is ClassUnknown and never shares a connection: a command wrongly
// kept apart costs a round trip, one wrongly shared costs its neighbours their
// replies.
type Table struct {
	commands map[string]*entry // by lower-case name; no entry changes once entered
	index    index             // the same, for finding
}

// entry is what the table holds of one command.
type entry struct {
	Route
	// refine says how the arguments change the route; nil if they do not.
	refine func(*entry, resp.Command) Route
	// subs holds a container's subcommands by lower-case name, other is for those
	// not listed.
	subs  map[string]Route
	other Route
	// vouched marks a command that the operator declared shareable.
	vouched bool
	// reported marks a command known only from the server's list.
	reported bool
	// deniedSubs are subcommands that clients may not send, otherwise is the entry for
	// the rest.
	deniedSubs map[string]bool
	otherwise  *entry
}

var unknown = Route{Class: ClassUnknown, Write: true}

// defaultTable is built once: it is the same for every proxy of the process.
var defaultTable = sync.OnceValue(buildDefault)

// DefaultTable returns the compiled-in table.
func DefaultTable() *Table { return defaultTable() }

// Classify returns the route of one command. It looks at the name, at the
// subcommand of a container, and at those options that decide whether the
// command blocks; it allocates nothing.
func (t *Table) Classify(c resp.Command) Route {
	e := t.index.find(c.Arg(0))
	if e == nil {
		return unknown
	}
	if e.refine == nil {
		return e.Route
	}
	return e.refine(e, c)
}

// lowered writes the lower-case form of a name to buf; false if it has no
// place there.
func lowered(buf *[maxNameLen]byte, name []byte) ([]byte, bool) {
	if len(name) > len(buf) {
		return nil, false
	}
	for i, b := range name {
		if 'A' <= b && b <= 'Z' {
			b |= 0x20
		}
		buf[i] = b
	}
	return buf[:len(name)], true
}

// WithShared returns the table with further commands that may share a lane,
// by the operator's word: modules' or those of a newer server. It reports every
// name that cannot be one, or that the table knows to be unfit; one that is
// shared already is not an error.
func (t *Table) WithShared(names []string) (*Table, error) {
	shared := &Table{commands: maps.Clone(t.commands)}
	var faults []error
	for _, name := range names {
		if err := shared.vouch(strings.ToLower(name)); err != nil {
			faults = append(faults, fmt.Errorf("shared command %q: %w", name, err))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	shared.index = newIndex(shared.commands)
	return shared, nil
}

// CheckShared says why a name cannot be one for Config.SharedCommands, see WithShared.
func CheckShared(name string) error {
	return (&Table{commands: maps.Clone(DefaultTable().commands)}).vouch(strings.ToLower(name))
}

// vouch makes one command shared or says why it must not be.
func (t *Table) vouch(name string) error {
	if name == "" || len(name) > maxNameLen || strings.ContainsAny(name, " |\t\r\n") {
		return fmt.Errorf("must be the name of one command, without subcommand, of 1 to %d bytes", maxNameLen)
	}
	e, known := t.commands[name]
	switch {
	case !known:
		t.commands[name] = &entry{Route: sharedWrite, vouched: true}
	case e.Class == ClassShared && e.refine == nil:
	case e.reported && e.Class == ClassUnknown:
		vouched := *e
		vouched.Class, vouched.vouched = ClassShared, true
		t.commands[name] = &vouched
	case e.refine != nil:
		return errors.New("has arguments that decide, which the proxy looks after itself")
	default:
		return fmt.Errorf("must not share a connection (class %s)", e.Class)
	}
	return nil
}

// WithServer returns the table corrected by the server's own list. What the
// server flags as blocking blocks, what it flags as a write writes. Commands
// that only the server knows stay apart unless they were declared shared. The
// reverse is not concluded: 7.0 does not flag WAIT as blocking, and modules do
// not flag theirs.
func (t *Table) WithServer(cmds []upstream.CommandInfo) *Table {
	corrected := &Table{commands: maps.Clone(t.commands)}
	for _, c := range cmds {
		name := strings.ToLower(c.Name)
		e := entry{Route: unknown, reported: true}
		if known := t.commands[name]; known != nil {
			e = *known
		}
		if e.vouched || e.reported {
			e.Write = !c.Flag("readonly")
		}
		e.Route = correct(e.Route, e.refine != nil, c)
		if e.subs != nil {
			e.subs = correctSubs(e.subs, c.Subcommands)
		} else {
			for _, sub := range c.Subcommands {
				e.Route = correct(e.Route, e.refine != nil, sub)
			}
		}
		corrected.commands[name] = &e
	}
	corrected.index = newIndex(corrected.commands)
	return corrected
}

// correct applies the server's flags to one route. A command whose arguments
// decide whether it blocks carries the flag as well, and keeps its own rule.
func correct(r Route, refined bool, c upstream.CommandInfo) Route {
	if c.Flag("blocking") && !refined && (r.Class == ClassShared || r.Class == ClassUnknown) {
		r.Class = ClassBlocking
	}
	r.Write = r.Write || c.Flag("write")
	return r
}

// correctSubs applies the server's flags to the subcommands of a container
// that the table knows; others remain what the container says of strangers.
func correctSubs(subs map[string]Route, cmds []upstream.CommandInfo) map[string]Route {
	subs = maps.Clone(subs)
	for _, c := range cmds {
		_, name, _ := strings.Cut(strings.ToLower(c.Name), "|")
		if r, known := subs[name]; known {
			subs[name] = correct(r, false, c)
		}
	}
	return subs
}

package proxy

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/redcon"

	"streamproxy/internal/resp"
)

// Clients may not send what Config.Deny lists, in whatever form. Which commands these
// are the table says, so that the others pay nothing for it; this file says what
// becomes of them.
//
// Mostly the proxy answers by itself. It cannot where the server has to know of the
// refusal (a transaction in which a command was refused must fail) and where replies
// are not counted (pinned connections). There the server gets a stand-in for the
// command, one that it does not know and therefore refuses in the same place, whatever
// mode the connection is in; and its refusal is turned into ours.

// denials is what is said of commands that are denied. It is immutable.
type denials struct {
	rules map[string]int // by lower-case name, or name|subcommand
	// replies and standIns are by rule. No client knows token, with which the name of
	// every stand-in begins, and so none can have it in a reply of another kind.
	replies  [][]byte
	standIns [][]byte
	token    string
}

// CheckDenied says why a name cannot be one for Config.Deny: it is neither the name of a
// command nor CONTAINER|SUBCOMMAND, each of 1 to 32 printable bytes. Whether there is
// such a command only the server knows.
func CheckDenied(name string) error {
	command, sub, two := strings.Cut(name, "|")
	if !deniable(command) || two && !deniable(sub) {
		return fmt.Errorf("is neither a command's name nor CONTAINER|SUBCOMMAND, each of 1 to %d bytes", maxNameLen)
	}
	return nil
}

func deniable(word string) bool {
	return word != "" && len(word) <= maxNameLen &&
		!strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' || r == '|' })
}

// CheckDeniedTogether says what is wrong with a list of names each of which is right:
// who may begin a transaction has to be able to end it.
func CheckDeniedTogether(names []string) error {
	multi, exec := false, false
	for _, name := range names {
		multi = multi || strings.EqualFold(name, "multi")
		exec = exec || strings.EqualFold(name, "exec")
	}
	if exec && !multi {
		return errors.New("has exec without multi, which would leave clients in transactions that they cannot end")
	}
	return nil
}

// newDenials reports every name that cannot be denied; nil is an empty list.
func newDenials(names []string) (*denials, error) {
	if len(names) == 0 {
		return nil, nil
	}
	faults := []error{CheckDeniedTogether(names)}
	d := &denials{rules: map[string]int{}, token: "streamproxy:" + rand.Text() + ":"}
	for _, name := range names {
		if err := CheckDenied(name); err != nil {
			faults = append(faults, fmt.Errorf("denied command %q %w", name, err))
		}
		name = strings.ToLower(name)
		d.rules[name] = len(d.replies)
		d.standIns = append(d.standIns, resp.AppendCommand(nil, d.token+strconv.Itoa(len(d.replies))))
		// The server's words for what an ACL forbids, with the one that does it.
		d.replies = append(d.replies, redcon.AppendError(nil,
			fmt.Sprintf("NOPERM streamproxy: no permissions to run the '%s' command through this proxy (--deny)", name)))
	}
	return d, errors.Join(faults...)
}

// rule finds the one that denies a command of which the table has said so.
func (d *denials) rule(cmd resp.Command) int {
	name := strings.ToLower(string(cmd.Arg(0)))
	if i, whole := d.rules[name]; whole {
		return i
	}
	return d.rules[name+"|"+strings.ToLower(string(cmd.Arg(1)))]
}

// WithDenied returns the table with commands, or single subcommands of theirs, that
// clients may not send. The names must be those that CheckDenied lets pass. What is
// derived from the result by another With method may forget subcommands: it comes last.
func (t *Table) WithDenied(names []string) *Table {
	if len(names) == 0 {
		return t
	}
	strict := &Table{commands: make(map[string]*entry, len(t.commands))}
	for name, e := range t.commands {
		strict.commands[name] = e
	}
	for _, name := range names {
		name, sub, single := strings.Cut(strings.ToLower(name), "|")
		if single {
			strict.denySub(name, sub)
		}
	}
	for _, name := range names {
		if name = strings.ToLower(name); !strings.Contains(name, "|") {
			strict.commands[name] = &entry{Route: strict.knownRoute(name).denied()}
		}
	}
	strict.index = newIndex(strict.commands)
	return strict
}

// knownRoute is the route of a command whatever its arguments.
func (t *Table) knownRoute(name string) Route {
	if e := t.commands[name]; e != nil {
		return e.Route
	}
	return unknown
}

// denySub denies one subcommand, or second word, of a command.
func (t *Table) denySub(name, sub string) {
	e := t.commands[name]
	if e == nil {
		e = &entry{Route: unknown}
	}
	if e.deniedSubs == nil {
		e = &entry{Route: e.Route, refine: (*entry).unlessDenied, otherwise: e, deniedSubs: map[string]bool{}}
		t.commands[name] = e
	}
	e.deniedSubs[sub] = true
}

// denied is the route of the same command where it is denied. The verb stays, because
// it says who may send the command: AUTH comes before all others.
func (r Route) denied() Route { return Route{Class: ClassDenied, Verb: r.Verb} }

// unlessDenied routes a command of which some subcommands are denied.
func (e *entry) unlessDenied(c resp.Command) Route {
	r := e.otherwise.Route
	if e.otherwise.refine != nil {
		r = e.otherwise.refine(e.otherwise, c)
	}
	var buf [maxNameLen]byte
	if sub, ok := lowered(&buf, c.Arg(1)); ok && e.deniedSubs[string(sub)] {
		return r.denied()
	}
	return r
}

// deny answers a command that is denied. Within a transaction the server gets the
// stand-in, so that EXEC fails as it does after any refusal.
func (s *session) deny(cmd resp.Command) {
	d := s.p.denials
	rule := d.rule(cmd)
	if s.own == nil || !s.tx.multi {
		s.answer(d.replies[rule])
		return
	}
	s.ask(d.standIns[rule], func([]byte) []byte { return d.replies[rule] })
}

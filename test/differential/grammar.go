package differential

import (
	"slices"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// spec is a command as the server's COMMAND DOCS describes it.
type spec struct {
	name  []string // one word, or two for a subcommand
	group string
	args  []argument
}

// argument is one argument of a command, or a group of them.
type argument struct {
	name, kind, token                    string
	optional, multiple, multipleWithWord bool
	args                                 []argument
}

// keyed reports whether a command names its keys, so that it touches nothing else.
func (s *spec) keyed() bool { return anyKey(s.args) }

func anyKey(args []argument) bool {
	return slices.ContainsFunc(args, func(a argument) bool { return a.kind == "key" || anyKey(a.args) })
}

// full is the name as in the allowances: container|subcommand.
func (s *spec) full() string { return strings.Join(s.name, "|") }

// readGrammar asks a server for all its commands, in the order of their names.
func readGrammar(t testing.TB, s *redistest.Server) []spec {
	t.Helper()
	n, _ := parse(s.Do("COMMAND", "DOCS"))
	specs := specsOf(&n)
	if len(specs) < 200 {
		t.Fatalf("COMMAND DOCS describes %d commands", len(specs))
	}
	return specs
}

// specsOf reads a flattened map from names to descriptions.
func specsOf(n *node) []spec {
	var specs []spec
	for i := 0; i+1 < len(n.kids); i += 2 {
		name, about := strings.ToLower(n.kids[i].text()), &n.kids[i+1]
		if subs := about.field("subcommands"); subs != nil {
			specs = append(specs, specsOf(subs)...)
			continue
		}
		s := spec{name: strings.Split(name, "|")}
		if g := about.field("group"); g != nil {
			s.group = g.text()
		}
		if args := about.field("arguments"); args != nil {
			s.args = argumentsOf(args)
		}
		specs = append(specs, s)
	}
	slices.SortFunc(specs, func(a, b spec) int { return strings.Compare(a.full(), b.full()) })
	return specs
}

func argumentsOf(n *node) []argument {
	args := make([]argument, len(n.kids))
	for i := range n.kids {
		k := &n.kids[i]
		a := &args[i]
		for into, key := range map[*string]string{&a.name: "name", &a.kind: "type", &a.token: "token"} {
			if f := k.field(key); f != nil {
				*into = f.text()
			}
		}
		if flags := k.field("flags"); flags != nil {
			for f := range flags.kids {
				switch flags.kids[f].text() {
				case "optional":
					a.optional = true
				case "multiple":
					a.multiple = true
				case "multiple_token":
					a.multipleWithWord = true
				}
			}
		}
		if inner := k.field("arguments"); inner != nil {
			a.args = argumentsOf(inner)
		}
	}
	return args
}

package differential

import (
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

func TestGenerator(t *testing.T) {
	specs := readGrammar(t, redistest.Start(t))
	g := newGenerator(specs)
	if a, b := g.script(7, 300).String(), g.script(7, 300).String(); a != b {
		t.Error("the same seed makes two scripts")
	}
	if g.script(7, 300).String() == g.script(8, 300).String() {
		t.Error("two seeds make the same script")
	}
	names, verbs := map[string]int{}, map[verb]int{}
	for seed := range uint64(400) {
		for _, o := range g.script(seed, perScript).ops {
			verbs[o.verb]++
			if args := o.words(); len(args) > 0 {
				names[strings.ToLower(args[0])]++
				if len(args) > 1 {
					names[strings.ToLower(args[0]+"|"+args[1])]++
				}
			}
		}
	}
	for _, v := range []verb{do, inline, last, park, collect} {
		if verbs[v] == 0 {
			t.Errorf("no op says %q", v)
		}
	}
	for _, s := range specs {
		name := s.full()
		if _, out := leftOut[name]; !out && names[name] == 0 {
			t.Errorf("%s is never sent", name)
		}
	}
	for _, name := range []string{"shutdown", "debug", "monitor", "replicaof"} {
		if names[name] > 0 {
			t.Errorf("%s is sent", name)
		}
	}
}

// A key of one connection under way beside others is its own.
func TestCompanyKeepsToItself(t *testing.T) {
	g := newGenerator(readGrammar(t, redistest.Start(t)))
	found := 0
	for seed := range uint64(60) {
		for _, round := range g.script(seed, perScript).rounds() {
			for _, pipe := range round {
				for _, o := range pipe {
					if args := o.words(); len(round) > 1 && named(args, "flushall", "swapdb", "keys", "publish", "evalsha") {
						t.Errorf("seed %d: %q beside others", seed, args)
					}
				}
			}
			if len(round) > 1 {
				found++
			}
		}
	}
	if found == 0 {
		t.Error("nothing ever goes on beside something else")
	}
}

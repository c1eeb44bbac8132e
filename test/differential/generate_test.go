package differential

import (
	"slices"
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
	covered, verbs := newCoverage(specs), map[verb]int{}
	for seed := range uint64(1200) {
		for _, o := range g.script(seed, perScript).ops {
			verbs[o.verb]++
			args := o.words()
			covered.book(args, false)
			if line := strings.ToUpper(strings.Join(args, " ")); fatal(line) {
				t.Errorf("%q is sent", line)
			}
		}
	}
	for _, v := range []verb{do, inline, last, park, collect, drop} {
		if verbs[v] == 0 {
			t.Errorf("no op says %q", v)
		}
	}
	commands, options := covered.missing(covered.sent)
	for _, name := range commands {
		if why, out := leftOut[name]; !out || strings.Contains(why, "see") && !strings.Contains(why, "the table") && name != "quit" {
			t.Errorf("%s is never sent", name)
		}
	}
	for _, o := range options {
		if tokensLeftOut[o] == "" {
			t.Errorf("an option is never sent: %s", o)
		}
	}
}

// fatal tells what would end the server, or hand its role over.
func fatal(line string) bool {
	harmless := []string{"SHUTDOWN ABORT", "SHUTDOWN NOSUCH", "SHUTDOWN NOSAVE SAVE", "DEBUG SLEEP 0", "DEBUG PROTOCOL INTEGER", "DEBUG NOSUCH",
		"REPLICAOF NO ONE", "SLAVEOF NO ONE", "REPLICAOF 127.0.0.1 1", "SLAVEOF 127.0.0.1 1"}
	return !slices.Contains(harmless, line) &&
		named(strings.Fields(line), "shutdown", "debug", "replicaof", "slaveof", "sync", "psync")
}

// A key of one connection under way beside others is its own.
func TestCompanyKeepsToItself(t *testing.T) {
	g := newGenerator(readGrammar(t, redistest.Start(t)))
	found := 0
	for seed := range uint64(1000) {
		for _, round := range g.script(seed, perScript).rounds() {
			for _, pipe := range round {
				for _, o := range pipe {
					if args := o.words(); len(round) > 1 && named(args, "flushall", "swapdb", "keys", "evalsha") ||
						len(round) > 1 && named(args, "publish", "subscribe", "lpush", "bitpos", "setex", "append", "zadd") &&
							len(args) > 1 && !strings.HasPrefix(args[1], "own") {
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

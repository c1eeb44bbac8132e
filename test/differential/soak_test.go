package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

var (
	commands   = flag.Int("commands", 0, "how many random commands TestSoak sends at least; 0: a short run")
	seed       = flag.Uint64("seed", 0, "the first seed; 0: a random one")
	failures   = flag.Int("failures", 1, "after how many scripts that differ TestSoak stops")
	scriptFile = flag.String("script", "", "a script to play instead of random ones")
	times      = flag.Int("times", 1, "how often to play it")
)

const (
	// perScript is the length of one random script: short enough to shrink fast.
	perScript = 150
	// replyTimeout is how long one reply may take before the silence itself is compared.
	replyTimeout = 10 * time.Second
	// shrinkBudget bounds how often a failing script is played again.
	shrinkBudget = 200
	// tellEvery is after how many commands a long run says how far it is.
	tellEvery = 10_000
)

// TestSoak plays random scripts on both sides. A plain run is short; see the package comment.
func TestSoak(t *testing.T) {
	p := newPair(t)
	if *scriptFile != "" {
		replay(t, p, *scriptFile)
		return
	}
	first := *seed
	if first == 0 {
		first = rand.Uint64() >> 16
	}
	want, budget := *commands, time.Duration(0)
	if want == 0 {
		want, budget = 1<<30, 8*time.Second
		if testing.Short() {
			budget = 3 * time.Second
		}
	}
	specs := readGrammar(t, p.direct)
	g := newGenerator(specs)
	p.covered = newCoverage(specs)
	sent, scripts, failed, start := 0, 0, 0, time.Now()
	defer func() {
		fmt.Printf("differential: %d commands in %d scripts, seeds %d to %d, %.1fs\n",
			sent, scripts, first, first+uint64(max(scripts, 1)-1), time.Since(start).Seconds())
		if *commands > 0 {
			fmt.Print(p.covered)
		}
	}()
	for n := first; sent < want; n++ {
		if budget > 0 && time.Since(start) > budget {
			return
		}
		s := g.script(n, perScript)
		if err := p.run(s, replyTimeout); err != nil {
			t.Errorf("seed %d: %v\n%s", n, err, p.explain(s, err))
			if failed++; failed == *failures {
				return
			}
		}
		before := sent
		sent += s.commands()
		scripts++
		if *commands > 0 && before/tellEvery < sent/tellEvery {
			fmt.Printf("differential: %d commands, seed %d, %.0fs\n", sent, n, time.Since(start).Seconds())
		}
	}
}

// explain shrinks a script that failed with an error of this kind, and says how to play it again.
func (p *pair) explain(s script, first error) string {
	var last error // what the smallest script gave when it failed
	fails := func(s script) bool {
		err := p.run(s, 2*time.Second)
		if !alike(err, first) {
			return false
		}
		last = err
		return true
	}
	tries := 3
	for tries > 0 && !fails(s) {
		tries--
	}
	if tries == 0 {
		return fmt.Sprintf("three more runs did not differ; the whole script:\n%s", s)
	}
	s = shrink(s, shrinkBudget, fails)
	return fmt.Sprintf("shrunk, to be played with -args -script FILE:\n%s\nwhich gave: %v", s, last)
}

func replay(t *testing.T, p *pair, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := readScript(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for n := range *times {
		if err := p.run(s, replyTimeout); err != nil {
			t.Fatalf("run %d: %v", n+1, err)
		}
	}
}

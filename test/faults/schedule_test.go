//go:build faults

package faults

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// fault is something that is done to the proxy's world, and undone before it returns: inject may
// take as long as the fault lasts.
type fault struct {
	name string
	// durable says that it needs a server that keeps its data, volatile one that loses them.
	durable, volatile bool
	// restarts says that the proxy's process is another one afterwards.
	restarts bool
	// apart says that it needs a network of the proxy's own.
	apart  bool
	inject func(l *lab, r *rand.Rand)
}

// faultCount says how often a fault was injected, and under how many commands.
type faultCount struct {
	times, commands int64
}

// between draws a duration.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)))
}

// possible lists the faults of a run.
func (l *lab) possible() []fault {
	wanted := strings.Split(l.only, ",")
	var list []fault
	for _, f := range faults {
		switch {
		case f.durable && !l.durable, f.volatile && l.durable, f.apart && l.space == nil, f.restarts && l.soak != nil, l.only != "" && !slices.Contains(wanted, f.name):
		case f.name == diskFull && !l.small, f.name == diskFullExit && !l.small:
		default:
			list = append(list, f)
		}
	}
	return list
}

// breakThings injects one fault after the other, until the plan's time is over. Which ones, how
// long each lasts and how long the peace between two depends on the seed alone.
func (l *lab) breakThings() {
	list := l.possible()
	for end := time.Now().Add(l.time); time.Now().Before(end) && l.proxy.alive() && !l.enough(); {
		<-time.After(between(l.rnd, l.gap/4, l.gap*7/4))
		f := list[l.rnd.IntN(len(list))]
		r := rand.New(rand.NewPCG(l.rnd.Uint64(), 1)) // a fault may draw as it likes
		before := l.tally.commands()
		l.lately.Store(&f.name)
		f.inject(l, r)
		n := l.faults[f.name]
		if n == nil {
			n = new(faultCount)
			l.faults[f.name] = n
		}
		n.times++
		n.commands += l.tally.commands() - before
		l.awaitService(f.name)
	}
}

const (
	// serviceTime is within how long clients must be served again after a fault. It exceeds the
	// proxy's deadlines and its pauses between dials by far, because the machine may be busy.
	serviceTime = 30 * time.Second
	// slowService is worth a line in the log.
	slowService = 2 * time.Second
	// serviceReplies is how many answers show that they are.
	serviceReplies = 50
)

// awaitService wants that the proxy finds its way back.
func (l *lab) awaitService(after string) {
	want := l.tally.verdicts[done].Load() + serviceReplies
	began := time.Now()
	for l.tally.verdicts[done].Load() < want && l.proxy.alive() && !l.enough() {
		if time.Since(began) > serviceTime {
			l.tally.violate("hang", "no service within %v after %s", serviceTime, after)
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	if took := time.Since(began); took > slowService {
		l.t.Logf("%v until clients were served again after %s", took.Round(time.Millisecond), after)
	}
}

// enough reports whether the plan has seen what it was made for.
func (l *lab) enough() bool { return l.until != nil && l.until() }

// injected is how many faults there were.
func (l *lab) injected() (n int64) {
	for _, c := range l.faults {
		n += c.times
	}
	return n
}

// faultNames lists what was injected.
func (l *lab) faultNames() []string { return slices.Sorted(maps.Keys(l.faults)) }

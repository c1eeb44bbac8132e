//go:build faults

package faults

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

// finding is one line of a record: what a run did and found.
type finding struct {
	Revision   string              `json:"revision"`
	Started    time.Time           `json:"started"`
	Seed       uint64              `json:"seed"`
	Durable    bool                `json:"durable"` // the server kept its data when it was killed
	Secure     bool                `json:"secure"`  // TLS between proxy and server
	Apart      bool                `json:"apart"`   // the proxy had a network of its own
	Race       bool                `json:"race"`    // the proxy ran under the race detector
	Clients    int                 `json:"clients"`
	Seconds    float64             `json:"seconds"`
	Commands   int64               `json:"commands"`
	Verdicts   map[string]int64    `json:"verdicts"`
	Kinds      map[string]int64    `json:"kinds"` // commands by kind of client
	Faults     map[string]injected `json:"faults"`
	Violations map[string]int      `json:"violations"` // by promise; empty: none
	Soak       *soakResult         `json:"soak,omitempty"`
}

// injected says how often a fault came, and how many commands had their outcome while it lasted.
type injected struct {
	Times    int64 `json:"times"`
	Commands int64 `json:"commands"`
}

// finding sums the run up.
func (l *lab) finding() finding {
	f := finding{Revision: revision(), Started: l.tally.began.UTC().Truncate(time.Second), Seed: l.seed,
		Durable: l.durable, Secure: l.secure, Apart: l.space != nil, Race: l.race, Clients: l.clients, Seconds: time.Since(l.tally.began).Round(time.Second / 10).Seconds(),
		Commands: l.tally.commands(), Verdicts: map[string]int64{}, Kinds: map[string]int64{},
		Faults: map[string]injected{}, Violations: l.tally.violations, Soak: l.soak}
	for v := range numVerdicts {
		f.Verdicts[v.String()] = l.tally.verdicts[v].Load()
	}
	l.tally.kinds.Range(func(kind, n any) bool {
		f.Kinds[kind.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	for name, n := range l.faults {
		f.Faults[name] = injected{n.times, n.commands}
	}
	return f
}

// record appends the run to the file asked for, if one was.
func (l *lab) record() error {
	if *recordFlag == "" || l.mutant != "" {
		return nil
	}
	line, err := json.Marshal(l.finding())
	if err != nil {
		return err
	}
	file, err := os.OpenFile(*recordFlag, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(line, '\n'))
	return err
}

// revision is the source's, as far as the version control says.
func revision() string {
	text, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

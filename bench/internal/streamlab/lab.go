package streamlab

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Lab is what the experiments have in common.
type Lab struct {
	Binary  string            // streamproxy
	Pythons map[string]string // interpreters by the pair's name in Pairs
	Out     io.Writer         // progress

	// Messages a row, and the time between two of them.
	Messages int
	Gap      time.Duration
	// Burst is the number of messages of a burst.
	Burst int
}

// Open installs the pairs below a folder.
func Open(ctx context.Context, binary, folder string, pairs []string, out io.Writer) (*Lab, error) {
	l := &Lab{Binary: binary, Pythons: map[string]string{}, Out: out}
	for _, name := range pairs {
		pair, ok := Pairs[name]
		if !ok {
			return nil, fmt.Errorf("pair %q: there are %v", name, PairNames)
		}
		python, err := pair.Install(ctx, folder)
		if err != nil {
			return nil, err
		}
		l.Pythons[name] = python
	}
	return l, nil
}

// pairs are those of this lab, in the order of tables.
func (l *Lab) pairs() (names []string) {
	for _, name := range PairNames {
		if l.Pythons[name] != "" {
			names = append(names, name)
		}
	}
	return names
}

// pause waits, or fails with the context.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// until pauses until the monotonic clock shows a time.
func until(ctx context.Context, at time.Duration) error { return pause(ctx, at-now()) }

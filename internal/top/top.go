package top

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// The bounds of Options.Every: shorter ones measure little but themselves.
const (
	MinEvery = 100 * time.Millisecond
	MaxEvery = time.Hour
)

// Options says what is shown, and where.
type Options struct {
	// Metrics is the page /metrics, Stats is /stats.json. Either may be missing.
	Metrics, Stats Source
	// Every is the time between two readings.
	Every time.Duration
	// Colour lets a terminal be shown in colours.
	Colour bool
}

// Once writes one view to w, as plain text: two readings, an interval apart, because
// there are no rates in one.
func (o *Options) Once(ctx context.Context, w io.Writer) error {
	before, err := o.read(ctx)
	if err != nil {
		return err
	}
	select {
	case <-time.After(o.Every):
	case <-ctx.Done():
		return ctx.Err()
	}
	now, err := o.read(ctx)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.Join(lines(view(before, now), wide, false), "\n")+"\n")
	return err
}

// Lines writes one view after the other to w, which is no terminal, until ctx ends.
func (o *Options) Lines(ctx context.Context, w io.Writer) error {
	for {
		err := o.Once(ctx, w)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			_, err = fmt.Fprintln(w)
		}
		if err != nil {
			return err
		}
	}
}

// Live shows view after view on a terminal until ctx, which is the terminal's, ends. A
// proxy that does not answer, or not yet, is waited for.
func (o *Options) Live(ctx context.Context, t *Terminal) error {
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	var before reading
	rows := []row{{name: "state", cells: []string{"reading"}}}
	for {
		now, err := o.read(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			rows = append([]row{{name: "state", cells: []string{"no answer: " + strings.ReplaceAll(err.Error(), "\n", "; ")}, bad: true}}, rows[1:]...)
		case before.at.IsZero():
			before = now
		default:
			rows, before = view(before, now), now
		}
		width, height := t.size()
		if _, err := io.WriteString(t, frame(lines(append(rows, row{name: "", cells: []string{"q ends"}}), width, o.Colour), height)); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

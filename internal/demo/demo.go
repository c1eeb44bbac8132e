package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"streamproxy/proxy"
)

// RoundTrip is the distance to the server that the demo shows, in both directions
// together. At this distance issue 699 of taskiq measured its workers.
const RoundTrip = 28 * time.Millisecond

// DefaultClients is how many clients stand on each side: enough that some of them
// always have a command under way together, as in a busy application.
const DefaultClients = 200

// The bounds of Options.Duration.
const (
	MinDuration = time.Second
	MaxDuration = 10 * time.Minute
)

// Options is what a demo needs to know.
type Options struct {
	// Proxy is the configuration of the proxy shown. Its Upstream counts only with
	// External; the demo puts its link in front of the server either way, and listens
	// to BatchEvents.Flushed beside whoever does already.
	Proxy proxy.Config
	// External shows Proxy.Upstream instead of an embedded server. The demo writes a
	// few hundred small keys there, which it deletes and which expire.
	External bool
	// Duration is how long the first part is measured, MinDuration to MaxDuration. The
	// second takes three times as long, but no longer than it needs.
	Duration time.Duration
	// Clients is the number of clients a side, at least 1.
	Clients int
	// Out is written to; with Terminal as a table that is drawn over itself, else as
	// one line a second.
	Out      io.Writer
	Terminal bool
}

// DefaultOptions returns what the command shows when it is told nothing.
func DefaultOptions() Options {
	return Options{Proxy: proxy.DefaultConfig(), Duration: 15 * time.Second, Clients: DefaultClients, Out: io.Discard}
}

func (o Options) validate() error {
	var faults []error
	if o.Duration < MinDuration || o.Duration > MaxDuration {
		faults = append(faults, fmt.Errorf("demo: duration %v: want %v to %v", o.Duration, MinDuration, MaxDuration))
	}
	if o.Clients < 1 {
		faults = append(faults, fmt.Errorf("demo: %d clients: want at least 1", o.Clients))
	}
	return errors.Join(faults...)
}

// Run shows the demo until its time is over or ctx ends, which is no error: the
// summary then covers the time until there. It leaves nothing running and nothing
// behind. Errors: the options, a server that cannot be reached, and any reply that
// is not the one its client waits for.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	st, err := openStage(ctx, o)
	if err != nil {
		return err
	}
	defer st.close()
	if shown, err := showCrowd(ctx, o, st); err != nil || !shown {
		return err
	}
	return newShift(st).show(ctx, o)
}

// showCrowd is the first part. shown is false if it was interrupted.
func showCrowd(ctx context.Context, o Options, st *stage) (shown bool, err error) {
	fmt.Fprintf(o.Out, "%d clients direct and %d through the proxy, to %s over a %v round trip, for %v.\n"+
		"Each sends one command, awaits its reply, and pauses; both sides run at once.\n\n",
		o.Clients, o.Clients, st.server, RoundTrip, o.Duration)
	c := newCrowd(st, o.Clients)
	defer c.close()
	if err := c.open(ctx); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(o.Out, "Interrupted before anything was measured.")
			return false, nil
		}
		return false, err
	}
	took, err := measure(ctx, o, st, c)
	if err != nil {
		return false, err
	}
	summarise(o.Out, took, st.direct.total(took), st.proxied.total(took))
	return ctx.Err() == nil, nil
}

// measure lets the crowd run and shows how it goes. It returns how long the crowd ran.
func measure(ctx context.Context, o Options, st *stage, c *crowd) (time.Duration, error) {
	began := time.Now()
	st.direct.begin()
	st.proxied.begin()
	limited, cancel := context.WithTimeout(ctx, o.Duration)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.run(limited) }()
	err := newScreen(o, c, o.Duration).show(done)
	return time.Since(began), err
}

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"streamproxy/bench/internal/result"
)

// Sides of the rate benchmark that goals refer to by name.
const (
	unixDelay = "streamproxy:unix:max-flush-delay=1ms"
	autoDelay = "streamproxy:rtt="
)

// rateTrips are the round trips over which the automatic delay is compared with fixed ones.
var rateTrips = []string{"0s", "1ms", "28ms"}

// rateDelays are the fixed ones.
var rateDelays = []string{"0", "250us", "1ms", "5ms"}

// rate is the experiment that the flush delay comes from: many callers who send single commands at
// a fixed rate. Over the loopback it shows what a delay of 1 ms spares the server; over links of
// several round trips, what the automatic delay makes of them.
func rate(ctx context.Context, args []string, out io.Writer) error {
	perSecond, callers, trips := 0.0, 0, ""
	sides := []string{"direct", longDelay, unixDelay}
	for _, t := range rateTrips {
		sides = append(sides, "direct:rtt="+t, autoDelay+t)
		for _, d := range rateDelays {
			sides = append(sides, autoDelay+t+":max-flush-delay="+d)
		}
	}
	o, err := parse("rate", args, sides, func(f *flag.FlagSet) {
		f.Float64Var(&perSecond, "rate", 40000, "commands a second of all callers, in bursts of what falls due each millisecond")
		f.IntVar(&callers, "callers", 128, "connections that send")
		f.StringVar(&trips, "trips", strings.Join(rateTrips, ","), "round trips of the links; none if empty")
	})
	if err != nil {
		return err
	}
	cell := result.Cell{Command: "GET", Callers: callers, Pipeline: 1, Rate: perSecond}
	cells := []result.Cell{cell}
	if trips == "" {
		return measured(ctx, "rate", o, cells, out)
	}
	for _, t := range strings.Split(trips, ",") {
		d, err := time.ParseDuration(t)
		if err != nil || !slices.Contains(rateTrips, t) {
			return fmt.Errorf("--trips %q: of %s", t, strings.Join(rateTrips, ","))
		}
		cell.Trip = t
		// Who waits for a reply sends nothing: as many callers as replies are under way, and half
		// of that to spare.
		cell.Callers = max(callers, int(perSecond*d.Seconds()*1.5))
		cells = append(cells, cell)
	}
	return measured(ctx, "rate", o, cells, out)
}

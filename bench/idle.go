package main

import (
	"context"
	"io"
	"time"

	"streamproxy/bench/internal/lab"
	"streamproxy/bench/internal/result"
)

// Sides of the idle benchmark that goals refer to by name.
const (
	noDelay    = "streamproxy:max-flush-delay=0"
	longDelay  = "streamproxy:max-flush-delay=1ms"
	shortDelay = "streamproxy:max-flush-delay=50us"
)

// idle measures what a proxy with nothing to do adds to one sequential caller, alone and beside
// many silent connections, and, with a few callers at a rate that leaves the machine mostly
// asleep, how long a batch waits that is to wait 50 µs.
func idle(ctx context.Context, args []string, out io.Writer) error {
	sides := append([]string{"direct"}, append(lab.DefaultPeers, noDelay, longDelay, shortDelay)...)
	o, err := parse("idle", args, sides, nil)
	if err != nil {
		return err
	}
	return measured(ctx, "idle", o, []result.Cell{
		{Command: "GET", Callers: 1, Pipeline: 1},
		{Command: "GET", Callers: 1, Idle: 1000, Pipeline: 1},
		{Command: "GET", Callers: 64, Pipeline: 1, Rate: waitRate, Tick: waitTick},
	}, out)
}

// waitTick spreads the rate evenly: in bursts a batch would also wait for the proxy to read the rest
// of its burst, and the timer would not be what is measured.
const waitTick = time.Second / waitRate

// waitRate is high enough that more than one arrival is to be expected within 50 µs, below which
// the policy rightly does not wait at all, and low enough that processors sleep in between.
const waitRate = 25000

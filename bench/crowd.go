package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"streamproxy/bench/internal/lab"
	"streamproxy/bench/internal/load"
	"streamproxy/bench/internal/proc"
	"streamproxy/bench/internal/result"
)

// What the crowd benchmark measures of the proxy's process.
const (
	perClient  = "KiB each"
	idleMemory = "idle MiB"
	peakMemory = "peak MiB"
	endMemory  = "MiB after 30 s"
	overIdle   = "times idle"
	backAfter  = "s to twice idle"
	afterCPU   = "CPU % of a core"
)

const (
	// burstCommands of burstValue bytes are the pipeline of some 100 KB that everybody sends.
	burstCommands, burstValue = 100, 980
	// watchAfter is how long the memory may take to return.
	watchAfter = 30 * time.Second
	// watchEvery is the pause between two looks at it.
	watchEvery = 100 * time.Millisecond
)

// crowd measures what clients cost that say nothing, and whether what a burst of all of them took
// comes back. Every round has processes of its own: memory remembers.
func crowd(ctx context.Context, args []string, out io.Writer) error {
	size, settle := 0, time.Duration(0)
	o, err := parse("crowd", args, []string{"streamproxy:maxclients=20000"}, func(f *flag.FlagSet) {
		f.IntVar(&size, "clients", 10000, "clients; two descriptors each, in two processes")
		f.DurationVar(&settle, "settle", 3*time.Second, "quiet time before memory is read as idle")
	})
	if err != nil {
		return err
	}
	cell := result.Cell{Title: fmt.Sprintf("%d clients, each pipelines %d SETs of %d B once", size, burstCommands, burstValue)}
	var report *result.Report
	for range o.rounds {
		l, err := lab.Open(ctx, o.sides)
		if err != nil {
			return err
		}
		if report == nil {
			report = newReport("crowd", &o, l)
		}
		for i := range l.Sides {
			sample, err := gather(ctx, &l.Sides[i], size, settle)
			if err != nil {
				l.Close()
				return fmt.Errorf("%s: %w", l.Sides[i].Name, err)
			}
			cell.Add(l.Sides[i].Name, sample)
		}
		l.Close()
	}
	report.Cells = append(report.Cells, cell)
	report.Markdown(out)
	return finish(report, &o, out)
}

// gather measures one side with a crowd of clients.
func gather(ctx context.Context, side *lab.Side, size int, settle time.Duration) (result.Sample, error) {
	if side.Process == nil {
		return result.Sample{}, fmt.Errorf("has no process to measure")
	}
	w := &watcher{pid: side.Process.Pid()}
	if err := w.rest(ctx, settle); err != nil {
		return result.Sample{}, err
	}
	empty := w.last
	clients, err := load.Gather(side.Addr, size)
	if err != nil {
		return result.Sample{}, err
	}
	defer clients.Close()
	if err := clients.Round(1, load.Set(load.Value(valueSize)), nil); err != nil {
		return result.Sample{}, err
	}
	if err := w.rest(ctx, settle); err != nil {
		return result.Sample{}, err
	}
	idle := w.last
	w.peak = 0
	if err := clients.Round(burstCommands, load.Set(load.Value(burstValue)), w.look); err != nil {
		return result.Sample{}, err
	}
	back, cpu, err := w.returns(ctx, 2*idle)
	if err != nil {
		return result.Sample{}, err
	}
	return result.Sample{More: map[string]float64{
		perClient:  (idle - empty) / 1024 / float64(size),
		idleMemory: idle / (1 << 20),
		peakMemory: w.peak / (1 << 20),
		endMemory:  w.last / (1 << 20),
		overIdle:   w.last / idle,
		backAfter:  back.Seconds(),
		afterCPU:   cpu,
	}}, nil
}

// watcher looks at a process's resident memory.
type watcher struct {
	pid        int
	looked     time.Time
	last, peak float64 // bytes
	err        error
}

// look reads the memory unless it has just done so.
func (w *watcher) look() {
	if time.Since(w.looked) < watchEvery {
		return
	}
	w.looked = time.Now()
	rss, err := proc.RSS(w.pid)
	if err != nil {
		w.err = err
		return
	}
	w.last = float64(rss)
	w.peak = max(w.peak, w.last)
}

// rest watches for a while in which nothing is done.
func (w *watcher) rest(ctx context.Context, d time.Duration) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end) && w.err == nil; {
		select {
		case <-tick.C:
			w.look()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return w.err
}

// returns watches for watchAfter, and says how long the memory took to be below bound (watchAfter
// if it never was) and how much of a core the process used in the last third of the time.
func (w *watcher) returns(ctx context.Context, bound float64) (back time.Duration, cpu float64, err error) {
	began, back := time.Now(), watchAfter
	for time.Since(began) < watchAfter*2/3 {
		if err := w.rest(ctx, 2*watchEvery); err != nil {
			return 0, 0, err
		}
		if w.last <= bound && back == watchAfter {
			back = time.Since(began)
		}
	}
	before, err := proc.CPU(w.pid)
	if err != nil {
		return 0, 0, err
	}
	quiet := time.Now()
	if err := w.rest(ctx, watchAfter/3); err != nil {
		return 0, 0, err
	}
	if w.last <= bound && back == watchAfter {
		back = time.Since(began)
	}
	after, err := proc.CPU(w.pid)
	return back, 100 * (after - before).Seconds() / time.Since(quiet).Seconds(), err
}

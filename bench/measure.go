package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"streamproxy/bench/internal/lab"
	"streamproxy/bench/internal/load"
	"streamproxy/bench/internal/proc"
	"streamproxy/bench/internal/result"
)

// valueSize is the payload of every command: the size that the goals speak of.
const valueSize = 64

// bench is a running benchmark: the sides, the report under way, where progress is printed.
type bench struct {
	lab    *lab.Lab
	opts   options
	report *result.Report
	out    io.Writer
}

// cells measures each cell in rounds, the sides in turn within a round.
func (b *bench) cells(ctx context.Context, cells []result.Cell) error {
	for _, cell := range cells {
		if err := load.Fill(b.lab.RedisAddr, max(cell.Callers, cell.Keys/wideFill), max(cell.Pipeline, min(cell.Keys, wideFill)), load.Value(valueSize)); err != nil {
			return err
		}
		for range b.opts.rounds {
			for i := range b.lab.Sides {
				side := &b.lab.Sides[i]
				if trip(side.Name) != cell.Trip {
					continue
				}
				sample, err := b.measure(ctx, side, &cell)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", cell.Name(), side.Name, err)
				}
				cell.Add(side.Name, sample)
			}
		}
		b.report.Cells = append(b.report.Cells, cell)
		cell.Markdown(b.out)
	}
	return nil
}

// reading is what the servers had used at one moment.
type reading struct {
	redis, proxy time.Duration
	metrics      lab.Metrics
	err          error
}

// measure runs one cell's load against one side.
func (b *bench) measure(ctx context.Context, side *lab.Side, cell *result.Cell) (result.Sample, error) {
	var begin, end reading
	outcome, err := load.Run(ctx, load.Plan{
		Addr:     side.Addr,
		Callers:  cell.Callers,
		Idle:     cell.Idle,
		Pipeline: cell.Pipeline,
		Rate:     cell.Rate,
		Tick:     cell.Tick,
		Request:  request(cell),
		Warmup:   b.opts.warmup,
		Duration: b.opts.duration,
		Edge: func(last bool) {
			if last {
				end = b.read(ctx, side)
			} else {
				begin = b.read(ctx, side)
			}
		},
	})
	if err != nil {
		return result.Sample{}, err
	}
	for _, r := range []reading{begin, end} {
		if r.err != nil {
			return result.Sample{}, r.err
		}
	}
	if outcome.Commands == 0 {
		return result.Sample{}, fmt.Errorf("no command was answered in %v", outcome.Elapsed)
	}
	return sample(outcome, begin, end), nil
}

// trip is the round trip that a side's name asks for, "" if none.
func trip(side string) string {
	for _, option := range strings.Split(side, ":") {
		if rtt, found := strings.CutPrefix(option, "rtt="); found {
			return rtt
		}
	}
	return ""
}

// request is what a cell's callers send.
func request(cell *result.Cell) func(caller, i int) (command, reply []byte) {
	if cell.Keys > 0 {
		return load.MGet(cell.Keys, wideFill, load.Value(valueSize))
	}
	return requests[cell.Command](load.Value(valueSize))
}

// requests are the commands that a cell may name.
var requests = map[string]func([]byte) func(caller, i int) (command, reply []byte){
	"GET": load.Get,
	"SET": load.Set,
}

// read takes a reading. It runs on the generator's thread while the load goes on; fetching a page
// of metrics costs about a millisecond of the seconds that are counted.
func (b *bench) read(ctx context.Context, side *lab.Side) reading {
	var r reading
	if r.redis, r.err = proc.CPU(b.lab.Redis.Pid()); r.err != nil {
		return r
	}
	if side.Process != nil {
		if r.proxy, r.err = proc.CPU(side.Process.Pid()); r.err != nil {
			return r
		}
	}
	r.metrics, r.err = side.Read(ctx)
	return r
}

func sample(o load.Outcome, begin, end reading) result.Sample {
	commands := float64(o.Commands)
	perCommand := func(d time.Duration) float64 { return d.Seconds() * 1e6 / commands }
	micros := func(q float64) float64 { return float64(o.Latency.ValueAtQuantile(q)) / 1e3 }
	s := result.Sample{
		Ops: commands / o.Elapsed.Seconds(),
		P50: micros(50), P99: micros(99), P999: micros(99.9),
		RedisCPU:  perCommand(end.redis - begin.redis),
		ProxyCPU:  perCommand(end.proxy - begin.proxy),
		ClientCPU: perCommand(o.CPU),
	}
	grown := end.metrics.Since(begin.metrics)
	if batches := grown["streamproxy_batch_commands_count"]; batches > 0 {
		s.Batch = grown["streamproxy_batch_commands_sum"] / batches
	}
	delayed := grown[`streamproxy_batch_flushes_total{reason="delay"}`]
	if wait, ok := grown.TopQuantile("streamproxy_batch_wait_seconds", delayed, 0.9); ok {
		s.WaitP90 = wait * 1e6
	}
	return s
}

package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"streamproxy/bench/internal/lab"
	"streamproxy/bench/internal/load"
	"streamproxy/bench/internal/proc"
	"streamproxy/bench/internal/result"
)

// What the large benchmark measures.
const (
	megabytes = "MB/s"
	aboveIdle = "MiB above idle"
	smallP99  = "p99 µs"
	smallOps  = "ops/s"
)

// The titles of its cells, after the command, by which goals know them.
const (
	sixteen = " 1 MB C=16"
	alone   = "50 callers of 64 B alone"
	beside  = "50 callers of 64 B beside one of "
)

// large measures large values: a few callers with 1 MB each, and small commands beside one client
// that writes and reads a giant.
func large(ctx context.Context, args []string, out io.Writer) error {
	giant := 0
	o, err := parse("large", args, []string{"direct", "streamproxy"}, func(f *flag.FlagSet) {
		f.IntVar(&giant, "giant", 512, "MB of the giant value, at most 512: Redis's limit")
	})
	if err != nil {
		return err
	}
	l, err := lab.Open(ctx, o.sides)
	if err != nil {
		return err
	}
	defer l.Close()
	b := &bench{lab: l, opts: o, report: newReport("large", &o, l), out: out}
	b.report.Markdown(out)
	value := load.Value(1 << 20)
	if err := load.Fill(l.RedisAddr, 50, 1, load.Value(valueSize)); err != nil {
		return err
	}
	plans := []struct {
		title string
		plan  load.Plan
		giant int64
	}{
		{"SET" + sixteen, load.Plan{Callers: 16, Pipeline: 1, Request: load.Set(value)}, 0},
		{"GET" + sixteen, load.Plan{Callers: 16, Pipeline: 1, Request: load.Get(value)}, 0},
		{alone, load.Plan{Callers: 50, Pipeline: 1, Request: load.Set(load.Value(valueSize))}, 0},
		{beside + strconv.Itoa(giant) + " MB", load.Plan{Callers: 50, Pipeline: 1, Request: load.Set(load.Value(valueSize))}, int64(giant) << 20},
	}
	for i := range plans {
		p := &plans[i]
		cell := result.Cell{Title: p.title}
		for range o.rounds {
			for j := range l.Sides {
				p.plan.Addr, p.plan.Warmup, p.plan.Duration = l.Sides[j].Addr, o.warmup, o.duration
				sample, err := weigh(ctx, &l.Sides[j], p.plan, p.giant)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", p.title, l.Sides[j].Name, err)
				}
				cell.Add(l.Sides[j].Name, sample)
			}
		}
		b.report.Cells = append(b.report.Cells, cell)
		cell.Markdown(out)
	}
	return finish(b.report, &o, out)
}

// weigh runs a load, beside a client that writes and reads a giant value if that is not 0, and
// watches the proxy's memory meanwhile.
func weigh(ctx context.Context, side *lab.Side, plan load.Plan, giant int64) (result.Sample, error) {
	w := &watcher{}
	before := 0.0
	if side.Process != nil {
		w.pid = side.Process.Pid()
		rss, err := proc.RSS(w.pid)
		if err != nil {
			return result.Sample{}, err
		}
		before = float64(rss)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var company sync.WaitGroup
	var moved int64
	var took time.Duration
	var giantErr error
	if giant > 0 {
		company.Go(func() { moved, took, giantErr = carry(ctx, side.Addr, giant) })
	}
	watching := make(chan struct{})
	company.Go(func() {
		for tick := time.NewTicker(watchEvery); ; {
			select {
			case <-watching:
				tick.Stop()
				return
			case <-tick.C:
				if w.pid != 0 {
					w.look()
				}
			}
		}
	})
	outcome, err := load.Run(ctx, plan)
	cancel()
	close(watching)
	company.Wait()
	switch {
	case err != nil:
		return result.Sample{}, err
	case giantErr != nil:
		return result.Sample{}, giantErr
	case w.err != nil:
		return result.Sample{}, w.err
	}
	_, reply := plan.Request(0, 0)
	command, _ := plan.Request(0, 0)
	perSecond := float64(outcome.Commands) / outcome.Elapsed.Seconds()
	s := result.Sample{More: map[string]float64{
		megabytes: perSecond * float64(len(command)+len(reply)) / 1e6,
		smallP99:  float64(outcome.Latency.ValueAtQuantile(99)) / 1e3,
		smallOps:  perSecond,
	}}
	if giant > 0 {
		s.More[megabytes] = float64(moved) / took.Seconds() / 1e6
	}
	if w.pid != 0 {
		s.More[aboveIdle] = max(w.peak-before, 0) / (1 << 20)
	}
	return s, nil
}

// carry writes a giant value and reads it back, again and again until ctx ends, and returns how
// many bytes that moved, in how long.
func carry(ctx context.Context, addr string, size int64) (moved int64, took time.Duration, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	began := time.Now()
	r := bufio.NewReaderSize(conn, 256<<10)
	key := "bench:giant"
	head := fmt.Sprintf("*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n", len(key), key, size)
	for {
		n, err := io.WriteString(conn, head)
		moved += int64(n)
		if err == nil {
			n64, e := io.CopyN(conn, zeros{}, size)
			moved, err = moved+n64, e
		}
		if err == nil {
			_, err = io.WriteString(conn, "\r\n")
		}
		if err == nil {
			err = expectLine(r, "+OK\r\n")
		}
		if err == nil {
			_, err = fmt.Fprintf(conn, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(key), key)
		}
		if err == nil {
			err = expectLine(r, fmt.Sprintf("$%d\r\n", size))
		}
		if err == nil {
			n64, e := io.CopyN(io.Discard, r, size+2)
			moved, err = moved+n64, e
		}
		switch {
		case ctx.Err() != nil:
			return moved, time.Since(began), nil
		case err != nil:
			return moved, time.Since(began), fmt.Errorf("the giant: %w", err)
		}
	}
}

func expectLine(r *bufio.Reader, want string) error {
	got, err := r.ReadString('\n')
	if err == nil && got != want {
		return fmt.Errorf("got %q instead of %q", got, want)
	}
	return err
}

// zeros is a reader without end.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"streamproxy/bench/internal/result"
)

// chapter is one benchmark's part of the page.
type chapter struct {
	program, title, text string
	charts               []chart
}

type chart struct {
	file, title, unit string
	of                func(result.Sample) float64
}

var chapters = []chapter{
	{
		program: "throughput", title: "Throughput and processor time",
		text: "C callers, each of which sends a pipeline of P commands and waits for its replies; values of 64 bytes. " +
			"Server, proxy and generator share the machine's cores, so a proxy that costs less leaves more to the server. " +
			"Ratios refer to direct connections.",
		charts: []chart{
			{"throughput-ops.svg", "Commands per second (more is better)", "/s", result.Ops},
			{"throughput-proxy-cpu.svg", "Proxy's processor time per command (less is better)", "µs", result.ProxyCPU},
			{"throughput-redis-cpu.svg", "Redis's processor time per command (less is better)", "µs", result.RedisCPU},
		},
	},
	{
		program: "idle", title: "An idle proxy",
		text: "One sequential caller, alone and beside silent connections: what a hop costs when there is nothing to batch, " +
			"and that a flush delay is not paid then. Then a slow, steady rate at which batches do wait.",
		charts: []chart{{"idle-p50.svg", "Median latency (less is better)", "µs", result.P50}},
	},
	{
		program: "rate", title: "A fixed rate",
		text: "The load that the flush delay is for: 128 callers who send single commands at a fixed rate, 64 bytes each. " +
			"First what a delay of 1 ms spares the server over the loopback, with clients on TCP and on the unix socket. " +
			"Then links of several round trips (0 s is a link without delay), each with the automatic delay and fixed ones.",
		charts: []chart{{"rate-redis-cpu.svg", "Redis's processor time per command at a fixed rate (less is better)", "µs", result.RedisCPU}},
	},
	{
		program: "large", title: "Large values",
		text: "Sixteen callers with values of 1 MB; then fifty callers of small ones, alone and beside a client that writes and reads " +
			"a giant value over and over. The rate of the cell with the giant is the giant's.",
	},
	{
		program: "crowd", title: "Many clients",
		text: "The proxy's resident memory with thousands of idle clients, in a burst in which each of them sends 100 KB at once, and " +
			"after it. Every round has processes of its own.",
	},
	{
		program: "wide", title: "Many keys in one command",
		text:   "One caller reads ever more keys of 64 bytes with one `MGET`.",
		charts: []chart{{"wide-p50.svg", "Median latency of an MGET (less is better)", "µs", result.P50}},
	},
	{
		program: "metrics", title: "What metrics cost",
		text: "The same pipelined load with telemetry and without (`--telemetry-listen off`).",
	},
}

const reportHead = `# Benchmarks

Written by ` + "`go run ./bench report`" + ` from the results under bench/results; do not edit.
Repeat them with ` + "`make peers bench`" + `. Figures are medians over rounds in which the sides take turns; the
spread is the distance between the slowest and the fastest round. On a shared machine absolute
numbers are colour: compare sides within a table.
`

// report writes docs/benchmarks.md, its pictures, and the README's figures from whatever results
// there are.
func report(_ context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	results := flags.String("results", "bench/results", "folder of the JSON results")
	docs := flags.String("docs", "docs", "folder of the page")
	readme := flags.String("readme", "README.md", "page that shows the most important figures; empty: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	page := bytes.NewBufferString(reportHead)
	written := 0
	for i := range chapters {
		c := &chapters[i]
		r, err := result.Load(filepath.Join(*results, c.program+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(out, "no results of %s: run `go run ./bench %s` first\n", c.program, c.program)
			continue
		}
		if err != nil {
			return err
		}
		if err := c.write(page, r, filepath.Join(*docs, "pictures")); err != nil {
			return err
		}
		written++
	}
	found, err := streamChapter(page, *results, filepath.Join(*docs, "pictures"))
	if err != nil {
		return err
	}
	if !found {
		fmt.Fprintln(out, "no results of streams: run `go run ./bench streams` first")
	}
	crowded, err := neighbourChapter(page, *results)
	if err != nil {
		return err
	}
	if !crowded {
		fmt.Fprintln(out, "no results of neighbours: run `go run ./bench neighbours` first; the page says what it measures")
	}
	if written == 0 && !found && !crowded {
		return errors.New("no results at all")
	}
	path := filepath.Join(*docs, "benchmarks.md")
	if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(out, "written:", path)
	if *readme == "" {
		return nil
	}
	return writeFigures(*readme, *results)
}

// write adds the chapter to the page and its pictures to the folder.
func (c *chapter) write(page *bytes.Buffer, r *result.Report, pictures string) error {
	fmt.Fprintf(page, "\n## %s\n\n%s\n\n", c.title, c.text)
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return err
	}
	for _, picture := range c.charts {
		svg := r.Chart(picture.title, picture.unit, picture.of)
		if err := os.WriteFile(filepath.Join(pictures, picture.file), svg, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(page, "![%s](pictures/%s)\n\n", picture.title, picture.file)
	}
	r.Markdown(page)
	fmt.Fprintf(page, "\n### Goals\n")
	writeVerdicts(page, judge(r))
	return nil
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"streamproxy/bench/internal/result"
	"streamproxy/bench/internal/streamlab"
)

// The first page shows a few rows of the results, between these two lines.
const (
	figuresBegin = "<!-- Figures: written by `go run ./bench report`; do not edit. -->\n"
	figuresEnd   = "<!-- End of figures. -->\n"
)

// headline is a load that the first page shows.
type headline struct{ callers, pipeline int }

var headlines = []headline{{1, 1}, {50, 1}, {500, 1}, {50, 16}}

// headlineStreams is the number of streams of the workers on the first page.
const headlineStreams = 161

// figures renders the first page's tables. What has no results is left out.
func figures(results string) (string, error) {
	var text bytes.Buffer
	r, err := result.Load(filepath.Join(results, "throughput.json"))
	switch {
	case err == nil:
		throughputFigures(&text, r)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	workers, err := streamlab.Load(results)
	if err != nil {
		return "", err
	}
	streamFigures(&text, workers)
	return text.String(), nil
}

func throughputFigures(out *bytes.Buffer, r *result.Report) {
	fmt.Fprintf(out, "\n| `GET` of 64 bytes | direct | twemproxy | streamproxy | Redis's time a command: direct | behind streamproxy |\n")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|")
	for _, h := range headlines {
		for i := range r.Cells {
			c := &r.Cells[i]
			direct, peer, ours := c.Of("direct"), c.Of("nutcracker"), c.Of("streamproxy")
			if c.Command != "GET" || c.Callers != h.callers || c.Pipeline != h.pipeline || direct == nil || peer == nil || ours == nil {
				continue
			}
			fmt.Fprintf(out, "| %s | %s/s | %s/s | %s/s | %.2f µs | %.2f µs |\n", h, thousands(direct), thousands(peer), thousands(ours),
				direct.Median(result.RedisCPU), ours.Median(result.RedisCPU))
		}
	}
}

func (h headline) String() string {
	text := fmt.Sprintf("%d callers", h.callers)
	if h.callers == 1 {
		text = "1 caller"
	}
	if h.pipeline > 1 {
		text += fmt.Sprintf(", pipelines of %d", h.pipeline)
	}
	return text
}

// thousands renders a rate of commands in a width that rounds disagree about.
func thousands(s *result.Series) string {
	ops := s.Median(result.Ops) / 1000
	if ops < 100 {
		return fmt.Sprintf("%.1fk", ops)
	}
	return fmt.Sprintf("%.0fk", ops)
}

func streamFigures(out *bytes.Buffer, r *streamlab.Report) {
	fmt.Fprintf(out, "\n| a worker of taskiq-redis over %d streams, 28 ms away | direct: p50 | p95 | streamproxy: p50 | p95 | Redis commands a second: direct | streamproxy |\n", headlineStreams)
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|")
	for _, pair := range streamlab.PairNames {
		direct := r.Find(pair, "direct", headlineStreams, streamlab.Steady)
		ours := r.Find(pair, proxied, headlineStreams, streamlab.Steady)
		if direct == nil || ours == nil {
			continue
		}
		library, python, _ := strings.Cut(pair, "+")
		fmt.Fprintf(out, "| %s, redis-py %s | %.1f s | %.1f s | %.1f ms | %.1f ms | %.1f | %.1f |\n", library, python,
			direct.P(0.5)/1000, direct.P(0.95)/1000, ours.P(0.5), ours.P(0.95), direct.PerSecond, ours.PerSecond)
	}
	fmt.Fprintln(out)
}

// writeFigures puts the figures into the page at path.
func writeFigures(path, results string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(page), figuresBegin)
	_, after, ended := strings.Cut(rest, figuresEnd)
	if !begun || !ended {
		return fmt.Errorf("%s has no place for figures", path)
	}
	text, err := figures(results)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(before+figuresBegin+text+figuresEnd+after), 0o644)
}

package result

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Markdown writes the report: what was measured and how, then one table per cell. The first side
// of a cell is what the ratios refer to.
func (r *Report) Markdown(out io.Writer) {
	fmt.Fprintf(out, "- measured %s at revision %s, %d rounds, the sides taken in turn\n",
		r.Started.UTC().Format("2006-01-02 15:04 UTC"), r.Setup.Revision, r.Setup.Rounds)
	fmt.Fprintf(out, "- %s, %s, %d cores, %s; generator GOMAXPROCS=%d\n",
		r.Setup.System, r.Setup.CPU, r.Setup.Cores, r.Setup.Go, r.Setup.GOMAXPROCS)
	fmt.Fprintf(out, "- %s\n- `go run ./bench %s %s`\n", r.Setup.Redis, r.Program, r.Setup.Flags)
	for _, s := range r.Sides {
		if s.Command != "" {
			fmt.Fprintf(out, "- %s: %s; `%s`\n", s.Name, s.Version, s.Command)
		}
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(out, "- not installed, so not compared: %s\n", strings.Join(r.Missing, ", "))
	}
	for i := range r.Cells {
		r.Cells[i].Markdown(out)
	}
}

// Markdown writes the cell's table: medians, with the spread of the rounds beside the rate.
func (c *Cell) Markdown(out io.Writer) {
	fmt.Fprintf(out, "\n**%s**\n\n", c.Name())
	names := c.more()
	if len(names) > 0 {
		c.markdownMore(out, names)
		return
	}
	fmt.Fprintln(out, "| side | ops/s | spread | ratio | p50 µs | p99 | p99.9 | proxy CPU µs/cmd | Redis CPU | client CPU | commands/write |")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	if len(c.Series) == 0 {
		return
	}
	first := c.Series[0].Median(Ops)
	for i := range c.Series {
		s := &c.Series[i]
		fmt.Fprintf(out, "| %s | %.0f | %.0f %% | %s | %.0f | %.0f | %.0f | %s | %.2f | %.2f | %s |\n",
			s.Side, s.Median(Ops), 100*s.Spread(Ops), ratio(s.Median(Ops), first),
			s.Median(P50), s.Median(P99), s.Median(P999),
			orDash("%.2f", s.Median(ProxyCPU)), s.Median(RedisCPU), s.Median(ClientCPU), orDash("%.1f", s.Median(Batch)))
	}
}

// more lists the quantities of the cell's samples that only its benchmark has, by name.
func (c *Cell) more() []string {
	names := map[string]bool{}
	for i := range c.Series {
		for _, s := range c.Series[i].Rounds {
			for name := range s.More {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// markdownMore writes the table of a cell that has quantities of its own.
func (c *Cell) markdownMore(out io.Writer, names []string) {
	fmt.Fprintf(out, "| side | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---:|", len(names)))
	for i := range c.Series {
		fmt.Fprintf(out, "| %s |", c.Series[i].Side)
		for _, name := range names {
			of := More(name)
			fmt.Fprintf(out, " %s (± %.0f %%) |", short(c.Series[i].Median(of)), 50*c.Series[i].Spread(of))
		}
		fmt.Fprintln(out)
	}
}

func ratio(value, base float64) string {
	if base == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", value/base)
}

// orDash leaves out what was not measured.
func orDash(format string, value float64) string {
	if value == 0 {
		return "–"
	}
	return fmt.Sprintf(format, value)
}

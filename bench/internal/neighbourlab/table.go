package neighbourlab

import (
	"fmt"
	"io"
	"slices"

	"streamproxy/bench/internal/result"
)

// Markdown writes what the attacks are, and a table for each run.
func (r *Report) Markdown(out io.Writer) {
	fmt.Fprint(out, "| attack | what it is | the promise it tries |\n|---|---|---|\n")
	for _, a := range Attacks() {
		fmt.Fprintf(out, "| %s | %s | %s |\n", a.Name, a.What, a.Promise)
	}
	for _, run := range r.Runs {
		fmt.Fprintln(out)
		Table(out, run)
	}
}

// Table writes how a run was measured and its waits, a row for each attack and side but the first,
// which the others are held against.
func Table(out io.Writer, run *result.Report) {
	head := *run
	head.Cells = nil
	head.Markdown(out)
	fmt.Fprint(out, "\nMilliseconds, directly / through the side:\n\n"+
		"| attack | side | GET p99 | GET max | transaction p99 | pop p99 | new connection p99 | timer p99 | errors | GET p99, ratio (rounds) "+
		"| after: GET p99 | proxy CPU % | peak MiB | peak descriptors |\n"+
		"|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for i := range run.Cells {
		c := &run.Cells[i]
		if len(c.Series) == 1 {
			row(out, c, &c.Series[0], &result.Series{Side: c.Series[0].Side})
		}
		for j := 1; j < len(c.Series); j++ {
			row(out, c, &c.Series[0], &c.Series[j])
		}
	}
}

func row(out io.Writer, c *result.Cell, direct, side *result.Series) {
	pair := func(neighbour, what string) string {
		of := result.More(Quantity(neighbour, what))
		return millis(direct, of) + " / " + millis(side, of)
	}
	fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", c.Title, side.Side,
		pair(Get, "p99"), pair(Get, "max"), pair(Transaction, "p99"), pair(Pop, "p99"), pair(Connect, "p99"), pair(Timer, "p99"),
		failures(direct)+" / "+failures(side), ratio(direct, side), pair(Get, "after p99"),
		whole(side, ProxyCPU), whole(side, Memory), whole(side, Descriptors))
}

// millis is a median, with as many digits as can be told apart.
func millis(s *result.Series, of func(result.Sample) float64) string {
	v := s.Median(of)
	switch {
	case len(s.Rounds) == 0:
		return "–"
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	case v >= 1:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func whole(s *result.Series, quantity string) string {
	if v := s.Median(result.More(quantity)); v > 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return "–"
}

// failures are all neighbours' errors in all rounds, under attack: one is too many for a median.
func failures(s *result.Series) string {
	if len(s.Rounds) == 0 {
		return "–"
	}
	n := 0.0
	for _, sample := range s.Rounds {
		for i := range neighbours {
			n += sample.More[Quantity(neighbours[i].name, "errors")]
		}
	}
	if n > 0 {
		return fmt.Sprintf("**%.0f**", n)
	}
	return "0"
}

// ratio is that of the medians of a GET's 99th percentile, and the least and largest of a round,
// whose sides stood next to each other.
func ratio(direct, side *result.Series) string {
	of := result.More(Quantity(Get, "p99"))
	base := direct.Median(of)
	if base == 0 || len(side.Rounds) == 0 {
		return "–"
	}
	text := fmt.Sprintf("%.2f", side.Median(of)/base)
	var rounds []float64
	for i := range min(len(direct.Rounds), len(side.Rounds)) {
		if d := of(direct.Rounds[i]); d > 0 {
			rounds = append(rounds, of(side.Rounds[i])/d)
		}
	}
	if len(rounds) > 1 {
		text += fmt.Sprintf(" (%.2f–%.2f)", slices.Min(rounds), slices.Max(rounds))
	}
	return text
}

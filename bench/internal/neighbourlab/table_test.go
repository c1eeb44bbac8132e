package neighbourlab

import (
	"strings"
	"testing"

	"streamproxy/bench/internal/result"
)

func TestTable(t *testing.T) {
	run := measured(Quiet)
	alone := result.Cell{Title: "alone"}
	alone.Add("direct", result.Sample{More: map[string]float64{Quantity(Get, "p99"): 0.25}})
	run.Cells = append(run.Cells, alone)
	var out strings.Builder
	(&Report{Runs: []*result.Report{run}}).Markdown(&out)
	for _, want := range []string{
		"| guesses | 200 connections guess a password",
		"| none | streamproxy | 2.0 / 4.0 | 40 / 80 | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.00 | 0 / **3** | 2.00 (1.50–2.50) | 0.00 / 0.00 | 50 | 40 | 30 |\n",
		"| alone | direct | 0.25 / – |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	columns := 0
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "| attack | side") {
			columns = strings.Count(line, "|")
		} else if columns > 0 && strings.HasPrefix(line, "|") && strings.Count(line, "|") != columns {
			t.Errorf("%d bars instead of %d: %s", strings.Count(line, "|"), columns, line)
		}
	}
}

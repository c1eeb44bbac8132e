package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// tableRow is one line of the comparison.
type tableRow struct {
	title string
	value func(figures) string
}

// The rows that only a span of time has, and those that only the whole run has.
var (
	latencyRows = []tableRow{
		{"latency p50", func(f figures) string { return milliseconds(f.p50) }},
		{"latency p95", func(f figures) string { return milliseconds(f.p95) }},
	}
	carriageRows = []tableRow{
		{"commands per upstream write", func(f figures) string { return fmt.Sprintf("%.1f", f.perWrite()) }},
		{"upstream connections", func(f figures) string { return fmt.Sprint(f.conns) }},
	}
	liveRows = join(
		[]tableRow{{"commands/s", func(f figures) string { return fmt.Sprintf("%.0f", f.perSecond) }}},
		latencyRows,
		[]tableRow{{"upstream writes/s", func(f figures) string { return fmt.Sprintf("%.0f", f.writesPerSecond) }}},
		carriageRows,
	)
	summaryRows = join(
		[]tableRow{
			{"commands", func(f figures) string { return fmt.Sprint(f.commands) }},
			{"commands/s", func(f figures) string { return fmt.Sprintf("%.0f", f.perSecond) }},
		},
		latencyRows,
		[]tableRow{{"upstream writes", func(f figures) string { return fmt.Sprint(f.writes) }}},
		carriageRows,
	)
)

func join(parts ...[]tableRow) (rows []tableRow) {
	for _, p := range parts {
		rows = append(rows, p...)
	}
	return rows
}

// table compares the sides, one line a row.
func table(direct, proxied figures, rows []tableRow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s %12s %12s\n", "", "direct", "proxied")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-28s %12s %12s\n", r.title, r.value(direct), r.value(proxied))
	}
	return b.String()
}

// head and row are one side of a line where the output is no terminal.
func head(name string) string {
	return fmt.Sprintf("%-7s %7s %9s %9s %8s %9s", name, "cmd/s", "p50", "p95", "writes/s", "cmd/write")
}

func row(f figures) string {
	return fmt.Sprintf("%7s %7.0f %9s %9s %8.0f %9.1f", "", f.perSecond, milliseconds(f.p50), milliseconds(f.p95), f.writesPerSecond, f.perWrite())
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// summarise closes the demo with the figures of the whole run and what they come to.
func summarise(w io.Writer, took time.Duration, direct, proxied figures) {
	fmt.Fprintf(w, "Summary of %.1f s. Every reply was the one its client waited for.\n\n%s\n", took.Seconds(), table(direct, proxied, summaryRows))
	if direct.commands == 0 || proxied.commands == 0 {
		fmt.Fprintln(w, "Too short to compare.")
		return
	}
	fmt.Fprintf(w, "Per command, the server was written to %.1f times as often directly as through the\nproxy, over %d connections instead of %d; the median latency differs by %+.1f ms.\n",
		proxied.perWrite()/max(direct.perWrite(), 1e-9), proxied.conns, direct.conns, float64(proxied.p50-direct.p50)/float64(time.Millisecond))
}

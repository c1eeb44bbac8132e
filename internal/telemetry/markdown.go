package telemetry

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

const markdownHead = `# Metrics

Generated from the table of metrics by ` + "`make docs`" + `; do not edit.

Served at ` + "`/metrics`" + ` of ` + "`--telemetry-listen`" + `, beside those of the Go runtime (` + "`go_*`" + `) and of the
process (` + "`process_*`" + `). Series with a label exist from the start, at 0. No label ever holds
a client, a consumer or a key, but for ` + "`stream`" + `: it and ` + "`group`" + ` name the first 100 pairs that there
is something to say about, and are ` + "`__other__`" + ` for the rest.

| metric | type | label | |
|---|---|---|---|
`

// WriteMarkdown writes docs/metrics.md. The values of labels are those of l.
func WriteMarkdown(w io.Writer, l Labels) {
	fmt.Fprint(w, markdownHead)
	values := map[string][]string{
		clientConnsTotal: acceptResults,
		clientCommands:   l.Classes,
		clientLimits:     l.Limits,
		batchFlushes:     l.FlushReasons,
		upstreamErrors:   failReasons,
		logMessages:      logLevels,
		upstreamConns:    {"lane", "private", "control"},
		privateConns:     {"idle", "busy"},
		reclaimRounds:    reclaimResults,
		reclaimLocal:     localCommands,
		reclaimForwarded: forwardReasons,
		reclaimObserved:  observeResults,
		reclaimEntries:   entryActions,
	}
	for _, m := range table {
		fmt.Fprintf(w, "| `%s%s` | %s | %s | %s |\n", prefix, m.name, m.kind, labelText(m, values[m.name]), m.help)
	}
	fmt.Fprint(w, "\n## Buckets of the histograms\n\n| metric | upper bounds |\n|---|---|\n")
	for _, m := range table {
		if m.kind == histogram {
			fmt.Fprintf(w, "| `%s%s` | %s |\n", prefix, m.name, bounds(m.buckets))
		}
	}
}

// labelText names the labels of a metric and the values of its own one.
func labelText(m metric, values []string) string {
	var labels []string
	if m.label != "" {
		labels = append(labels, "`"+m.label+"`: "+strings.Join(values, ", "))
	}
	if slices.Contains(perGroup, m.name) {
		labels = append(labels, "`stream`, `group`")
	}
	return strings.Join(labels, "; ")
}

// bounds writes numbers without exponents, for eyes.
func bounds(buckets []float64) string {
	list := make([]string, len(buckets))
	for i, b := range buckets {
		list[i] = strconv.FormatFloat(b, 'f', -1, 64)
	}
	return strings.Join(list, ", ")
}

package streamlab

import (
	"fmt"
	"io"
	"strings"
)

// ManyStreams is the number of streams that the issue was about.
const ManyStreams = 161

// P returns a quantile of the row's latencies in milliseconds.
func (r *Row) P(q float64) float64 { return Quantile(r.Latencies, q) }

// Floor is how long a pair's burst must take at least: without distance, and a round trip for each
// read. It is 0 if that was not measured.
func (r *Report) Floor(pair string) float64 {
	for i := range r.Bursts {
		if b := &r.Bursts[i]; b.Pair == pair && b.Side == floorSide {
			return b.Seconds + float64(b.Reads)*2*Delay.Seconds()
		}
	}
	return 0
}

// Markdown writes what was measured, and how.
func (r *Report) Markdown(out io.Writer) {
	r.rows(out)
	r.bursts(out)
	r.colds(out)
	r.fleets(out)
	r.recoveries(out)
}

// how says when and on what parts were measured.
func (r *Report) how(out io.Writer, title string, parts ...string) {
	fmt.Fprintf(out, "\n### %s\n\n", title)
	for _, part := range parts {
		if m, ok := r.Measured[part]; ok {
			prefix := ""
			if m.RealTime {
				prefix = "chrt --rr 1 "
			}
			fmt.Fprintf(out, "- %s: measured %s at revision %s; %s, %s, %d cores; %s; `%sgo run ./bench streams %s`\n", part,
				m.Started.UTC().Format("2006-01-02 15:04 UTC"), m.Setup.Revision, m.Setup.System, m.Setup.CPU, m.Setup.Cores,
				m.Setup.Redis, prefix, m.Setup.Flags)
		}
	}
	fmt.Fprintln(out)
}

func (r *Report) rows(out io.Writer) {
	if len(r.Rows) == 0 {
		return
	}
	r.how(out, "Publish to yield", "rows", "poisson")
	fmt.Fprintln(out, "| worker | arrivals | streams | side | p50 ms | p95 | max | Redis commands/s | worker's own pass ms | messages |")
	fmt.Fprintln(out, "|---|---|---:|---|---:|---:|---:|---:|---:|---:|")
	for i := range r.Rows {
		row := &r.Rows[i]
		fmt.Fprintf(out, "| %s | %s | %d | %s | %.1f | %.1f | %.1f | %.1f | %.1f | %d |\n", row.Pair, row.Arrivals, row.Streams, row.Side,
			row.P(0.5), row.P(0.95), row.P(1), row.PerSecond, Quantile(row.Passes, 0.5), len(row.Latencies))
	}
}

func (r *Report) bursts(out io.Writer) {
	if len(r.Bursts) == 0 {
		return
	}
	r.how(out, "A burst on one of 161 streams", "burst")
	fmt.Fprintln(out, "| worker | side | messages | seconds | of it passes | reads | floor | ratio |")
	fmt.Fprintln(out, "|---|---|---:|---:|---:|---:|---:|---:|")
	for _, b := range r.Bursts {
		floor := r.Floor(b.Pair)
		fmt.Fprintf(out, "| %s | %s | %d | %.1f | %.1f | %d | %.1f | %.2f |\n",
			b.Pair, b.Side, b.Messages, b.Seconds, b.PassSeconds, b.Reads, floor, b.Seconds/max(floor, 1e-9))
	}
}

func (r *Report) colds(out io.Writer) {
	if len(r.Colds) == 0 {
		return
	}
	r.how(out, "After a worker's start", "cold")
	fmt.Fprintln(out, "| worker | side | first message ms | the next ms |\n|---|---|---:|---:|")
	type key struct{ pair, side string }
	first, second := map[key][]float64{}, map[key][]float64{}
	var keys []key
	for _, c := range r.Colds {
		k := key{c.Pair, c.Side}
		if first[k] == nil {
			keys = append(keys, k)
		}
		first[k], second[k] = append(first[k], c.First), append(second[k], c.Second)
	}
	for _, k := range keys {
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", k.pair, k.side, list(first[k]), list(second[k]))
	}
}

func list(values []float64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprintf("%.0f", v)
	}
	return strings.Join(texts, ", ")
}

func (r *Report) fleets(out io.Writer) {
	if len(r.Fleets) == 0 {
		return
	}
	r.how(out, "A fleet over 161 streams", "fleet")
	fmt.Fprintln(out, "| proxies | reclaim commands an interval of 30 s | against one |\n|---:|---:|---:|")
	for _, f := range r.Fleets {
		fmt.Fprintf(out, "| %d | %.0f | %.2f |\n", f.Proxies, f.PerInterval, f.PerInterval/max(r.Fleets[0].PerInterval, 1e-9))
	}
}

func (r *Report) recoveries(out io.Writer) {
	if len(r.Recoveries) == 0 {
		return
	}
	r.how(out, "A killed worker's entries", "recovery")
	fmt.Fprintf(out, "A min-idle of %v, so a round every %v.\n\n", recoveryIdle, recoveryIdle/2)
	fmt.Fprintln(out, "| worker | queue | entries | arrived | more than once | delivery count 2 | seconds to the last | bound |")
	fmt.Fprintln(out, "|---|---|---:|---:|---:|---:|---:|---:|")
	for _, c := range r.Recoveries {
		fmt.Fprintf(out, "| %s | %s | %d | %d | %d | %d | %.1f | %.0f |\n",
			c.Pair, c.Queue, c.Entries, c.Arrived, c.Repeated, c.CountedTwice, c.Seconds, c.BoundSeconds)
	}
}

package top

import (
	"fmt"
	"time"
)

// row is a heading and what stands behind it. bad is set if somebody should look at it.
type row struct {
	name  string
	cells []string
	bad   bool
}

func (r *row) add(format string, args ...any) {
	r.cells = append(r.cells, fmt.Sprintf(format, args...))
}

// view is two readings as rows; rates are over the time between them.
func view(before, now reading) []row {
	took := max(now.at.Sub(before.at), time.Millisecond).Seconds()
	g := now.gauges()
	rows := []row{stateRow(g, now)}
	if now.metrics == nil {
		return append(rows, plainRows(before.gauges(), g, took)...)
	}
	grown := now.metrics.since(before.metrics)
	return append(rows,
		clientsRow(g, grown, took), commandsRow(grown, took), timesRow(grown),
		batchesRow(now.metrics, grown, took), flushesRow(grown),
		upstreamRow(g, grown), memoryRow(g), reclaimRow(now.metrics, grown, took), errorsRow(now.metrics, grown))
}

// plainRows is what there is without /metrics.
func plainRows(before, g stats, took float64) []row {
	clients, commands := row{name: "clients"}, row{name: "commands"}
	clients.add("%s connected", count(g.Clients))
	clients.add("%s in flight", count(g.InFlight))
	commands.add("%s", rate(max(g.Commands-before.Commands, 0)/took))
	return []row{clients, commands, upstreamRow(g, nil), memoryRow(g)}
}

func stateRow(g stats, now reading) row {
	r := row{name: "state"}
	switch {
	case g.Draining:
		r.add("draining")
	case !g.UpstreamUp:
		r.add("upstream is not reachable")
		r.bad = true
	case g.NotReady != "":
		r.add("upstream is not ready: %s", g.NotReady)
		r.bad = true
	default:
		r.add("serving")
	}
	if now.stats != nil {
		r.add("up %s", span(g.UptimeSeconds))
		r.add("%s", g.Version)
	}
	return r
}

func clientsRow(g stats, grown series, took float64) row {
	r := row{name: "clients"}
	r.add("%s connected", count(g.Clients))
	r.add("%s in flight", count(g.InFlight))
	r.add("%s/s in", size(grown.sum("client_received_bytes_total")/took))
	r.add("%s/s out", size(grown.sum("client_sent_bytes_total")/took))
	return r
}

// commandsRow has the classes in which something was sent.
func commandsRow(grown series, took float64) row {
	const name = "client_commands_total"
	r := row{name: "commands"}
	r.add("%s", rate(grown.sum(name)/took))
	for _, class := range grown.values(name) {
		if n := grown.at(name, "class", class); n > 0 {
			r.add("%s %s", class, rate(n/took))
		}
	}
	return r
}

// timesRow is about the commands of the interval whose time was taken.
func timesRow(grown series) row {
	const name = "client_command_duration_seconds"
	r := row{name: "times"}
	if mean, some := grown.mean(name); some {
		r.add("mean %s", span(mean))
	}
	for _, q := range []float64{0.5, 0.99} {
		if v, some := grown.quantile(name, q); some {
			r.add("p%.0f %s", 100*q, span(v))
		}
	}
	if mean, some := grown.mean("proxy_overhead_seconds"); some {
		r.add("of it here %s", span(mean))
	}
	return r
}

func batchesRow(now, grown series, took float64) row {
	r := row{name: "batches"}
	r.add("%s", rate(grown.sum("batch_commands_count")/took))
	if mean, some := grown.mean("batch_commands"); some {
		r.add("%s commands each", count(mean))
	}
	if mean, some := grown.mean("batch_bytes"); some {
		r.add("%s each", size(mean))
	}
	if mean, some := grown.mean("batch_wait_seconds"); some {
		r.add("waited %s", span(mean))
	}
	r.add("may wait %s", span(now.sum("flush_delay_seconds")))
	return r
}

func flushesRow(grown series) row {
	const name = "batch_flushes_total"
	r := row{name: "flushes"}
	for _, reason := range grown.values(name) {
		if n := grown.at(name, "reason", reason); n > 0 {
			r.add("%s %.0f %%", reason, 100*n/grown.sum(name))
		}
	}
	return r
}

func upstreamRow(g stats, grown series) row {
	r := row{name: "upstream", bad: !g.UpstreamUp}
	r.add("%s shared", count(g.Lanes))
	r.add("%s private, %s busy", count(g.PrivateIdle+g.PrivateBusy), count(g.PrivateBusy))
	r.add("%s control", count(g.Control))
	if mean, some := grown.mean("upstream_roundtrip_seconds"); some {
		r.add("round trip %s", span(mean))
	}
	return r
}

func memoryRow(g stats) row {
	r := row{name: "buffers"}
	r.add("%s", size(g.BufferedBytes))
	return r
}

// reclaimRow has rounds since the start: within an interval there is mostly none.
func reclaimRow(now, grown series, took float64) row {
	r := row{name: "reclaim"}
	for _, result := range now.values("reclaim_rounds_total") {
		if n := now.at("reclaim_rounds_total", "result", result); n > 0 {
			r.add("%s rounds %s", count(n), result)
		}
	}
	r.add("%s leases", count(now.sum("reclaim_lease_held")))
	r.add("%s hot streams", count(now.sum("reclaim_hot_streams")))
	r.add("%s held, %s", count(now.sum("reclaim_held_entries")), size(now.sum("reclaim_held_bytes")))
	r.add("%s local answers", rate(grown.sum("reclaim_local_answers_total")/took))
	return r
}

// errorsRow has what went wrong since the start, and how much of it now.
func errorsRow(now, grown series) row {
	r := row{name: "errors"}
	add := func(what string, n, more float64) {
		if n > 0 {
			r.add("%s %s (+%s)", what, count(n), count(more))
			r.bad = r.bad || more > 0
		}
	}
	for _, reason := range now.values("upstream_errors_total") {
		add("upstream "+reason, now.at("upstream_errors_total", "reason", reason), grown.at("upstream_errors_total", "reason", reason))
	}
	add("reconnects", now.sum("upstream_reconnects_total"), grown.sum("upstream_reconnects_total"))
	add("protocol", now.sum("client_protocol_errors_total"), grown.sum("client_protocol_errors_total"))
	for _, limit := range now.values("client_limits_total") {
		add("limit "+limit, now.at("client_limits_total", "limit", limit), grown.at("client_limits_total", "limit", limit))
	}
	for _, level := range []string{"error", "warn"} {
		add("logged "+level, now.at("log_messages_total", "level", level), grown.at("log_messages_total", "level", level))
	}
	if len(r.cells) == 0 {
		r.add("none")
	}
	return r
}

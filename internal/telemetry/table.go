package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
)

// kind is the type of a metric.
type kind uint8

const (
	counter kind = iota
	gauge
	histogram
)

func (k kind) String() string { return [...]string{"counter", "gauge", "histogram"}[k] }

// metric is one row of the table of metrics: names and help of everything that is
// exported, for the collectors and for docs/metrics.md.
type metric struct {
	name    string // behind the prefix
	kind    kind
	label   string // empty: none; perGroup has metrics with more
	help    string
	buckets []float64
}

// prefix begins the name of every metric of this program.
const prefix = "streamproxy_"

// The names, which are promises to dashboards and alert rules (golden test).
const (
	buildInfo          = "build_info"
	draining           = "draining"
	clientConns        = "client_connections"
	clientConnsTotal   = "client_connections_total"
	clientCommands     = "client_commands_total"
	clientDuration     = "client_command_duration_seconds"
	proxyOverhead      = "proxy_overhead_seconds"
	clientReceived     = "client_received_bytes_total"
	clientSent         = "client_sent_bytes_total"
	clientProtoErrors  = "client_protocol_errors_total"
	clientLimits       = "client_limits_total"
	bufferedBytes      = "buffered_bytes"
	batchCommands      = "batch_commands"
	batchBytes         = "batch_bytes"
	batchFlushes       = "batch_flushes_total"
	batchWait          = "batch_wait_seconds"
	flushDelay         = "flush_delay_seconds"
	upstreamUp         = "upstream_up"
	upstreamConns      = "upstream_connections"
	upstreamRoundtrip  = "upstream_roundtrip_seconds"
	upstreamInflight   = "upstream_inflight_commands"
	upstreamErrors     = "upstream_errors_total"
	upstreamReconnects = "upstream_reconnects_total"
	upstreamPushes     = "upstream_pushes_dropped_total"
	privateConns       = "private_connections"
	privateWait        = "private_wait_seconds"
	reclaimRounds      = "reclaim_rounds_total"
	reclaimSuccess     = "reclaim_last_success_timestamp_seconds"
	reclaimLeases      = "reclaim_lease_held"
	reclaimLocal       = "reclaim_local_answers_total"
	reclaimForwarded   = "reclaim_forwarded_total"
	reclaimObserved    = "reclaim_observed_total"
	reclaimEntries     = "reclaim_entries_total"
	reclaimHot         = "reclaim_hot_streams"
	reclaimHeldEntries = "reclaim_held_entries"
	reclaimHeldBytes   = "reclaim_held_bytes"
	reclaimScan        = "reclaim_scan_seconds"
	reclaimLost        = "reclaim_deleted_consumer_entries_total"
	logMessages        = "log_messages_total"
)

// The buckets, in seconds: a 1-2.5-5 ladder from where a proxy on the same machine
// can be fast to where something is clearly wrong.
var (
	// Round trips and whole commands: 25 µs on loopback to blocking reads of 10 s.
	tripBuckets = []float64{25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10}
	// What the proxy itself adds, waits included: microseconds, seconds under push-back.
	overheadBuckets = []float64{1e-6, 2.5e-6, 5e-6, 10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 100e-3, 1}
	// A flush delay is at most 1 ms when chosen and 100 ms when asked for.
	waitBuckets = []float64{1e-6, 5e-6, 10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 10e-3, 100e-3}
	// A wait for a private connection is nothing, a dial, or a queue.
	queueBuckets = []float64{10e-6, 100e-6, 500e-6, 1e-3, 5e-3, 10e-3, 50e-3, 100e-3, 500e-3, 1, 5, 30}
	countBuckets = prometheus.ExponentialBuckets(1, 2, 11)  // 1 to 1024 commands
	bytesBuckets = prometheus.ExponentialBuckets(64, 4, 10) // 64 B to 16 MiB
)

// table lists every metric in the order of docs/metrics.md.
var table = []metric{
	{buildInfo, gauge, "", "Always 1; the labels version, revision and go_version tell which build this is.", nil},
	{draining, gauge, "", "Whether the proxy is shutting down (1) or not (0).", nil},
	{bufferedBytes, gauge, "", "Bytes held for clients, in buffers and in what is remembered of them, which the memory limit bounds.", nil},
	{logMessages, counter, "level", "Log messages written, by level.", nil},

	{clientConns, gauge, "", "Client connections open now.", nil},
	{clientConnsTotal, counter, "result", "Client connections by what became of the attempt.", nil},
	{clientCommands, counter, "class", "Commands read from clients, by the class that decides how they travel.", nil},
	{clientDuration, histogram, "", "Time from a command's last byte read to its reply handed to the client's socket; sampled.", tripBuckets},
	{proxyOverhead, histogram, "", "The part of a command's duration that was not spent upstream; sampled.", overheadBuckets},
	{clientReceived, counter, "", "Bytes read from clients.", nil},
	{clientSent, counter, "", "Bytes written to clients.", nil},
	{clientProtoErrors, counter, "", "Clients that sent something that is not the Redis protocol.", nil},
	{clientLimits, counter, "limit", "Times a client has met a limit: a transaction refused, no more shared connections, closed for taking nothing, for the sake of memory, or for saying nothing.", nil},

	{batchCommands, histogram, "", "Commands in a batch written upstream.", countBuckets},
	{batchBytes, histogram, "", "Bytes in a batch written upstream.", bytesBuckets},
	{batchFlushes, counter, "reason", "Batches written upstream, by why they left when they did.", nil},
	{batchWait, histogram, "", "How long the first byte of a batch waited: what the flush delay cost.", waitBuckets},
	{flushDelay, gauge, "", "The flush delay in force, as last chosen.", nil},

	{upstreamUp, gauge, "", "Whether the server is reachable (1) or not (0).", nil},
	{upstreamConns, gauge, "kind", "Upstream connections open now, by role.", nil},
	{upstreamRoundtrip, histogram, "", "Time from a write on an idle upstream connection to the first byte back; sampled.", tripBuckets},
	{upstreamInflight, gauge, "", "Commands sent upstream that await their reply.", nil},
	{upstreamErrors, counter, "reason", "Upstream connections that ended while they were wanted, by reason.", nil},
	{upstreamReconnects, counter, "", "Shared upstream connections that were replaced after a loss.", nil},
	{upstreamPushes, counter, "", "Push messages dropped because no client had subscribed to them.", nil},

	{privateConns, gauge, "state", "Private upstream connections, by whether a client holds them.", nil},
	{privateWait, histogram, "", "How long a command waited for a private connection.", queueBuckets},

	{reclaimRounds, counter, "result", "Rounds over a set of streams: led with the lease, followed with another proxy's result, failed, or denied by the server's ACL.", nil},
	{reclaimSuccess, gauge, "", "The server's time, in seconds since 1970, of the result last taken over; 0 before the first.", nil},
	{reclaimLeases, gauge, "", "Sets of streams that this proxy probes for all proxies that share them.", nil},
	{reclaimLocal, counter, "command", "Commands of consumers that were answered here; multi is the whole transaction around an XAUTOCLAIM.", nil},
	{reclaimForwarded, counter, "reason", "Commands of a reclaim pass that were left to the server, by why.", nil},
	{reclaimObserved, counter, "result", "With --reclaim=observe: commands that would have been answered here, by whether the server answered the same.", nil},
	{reclaimEntries, counter, "action", "Stream entries that were claimed, delivered to a client, given back, or found deleted in a claim.", nil},
	{reclaimHot, gauge, "", "Streams, by user and min-idle, that have entries to be claimed.", nil},
	{reclaimHeldEntries, gauge, "", "Entries held for consumers that are about to ask for them.", nil},
	{reclaimHeldBytes, gauge, "", "Bytes of the entries that are held.", nil},
	{reclaimScan, gauge, "", "How long it takes to look at all pending entries of a group that has so many that they are read page by page: an abandoned one may wait so much longer.", nil},
	{reclaimLost, counter, "", "Pending entries that were lost for good when clients deleted their consumer.", nil},
}

// perGroup lists the metrics that have the labels stream and group beside their own.
var perGroup = []string{reclaimEntries, reclaimScan}

// lookup finds a row; a name that is missing is a slip of this package, which any
// test of it finds.
func lookup(name string) metric {
	for _, m := range table {
		if m.name == name {
			return m
		}
	}
	panic("telemetry: no metric " + name)
}

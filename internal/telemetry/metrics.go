// Package telemetry is the edge where events of the data path become Prometheus
// metrics, health probes and counted log lines.
//
// It imports none of the rooms it observes: what they report arrives through the
// methods of Metrics, whose arguments are numbers and small indices, and through one
// function that returns a Snapshot at each scrape. Every series that the data path
// counts into exists from the start and is found by index, so that an event costs an
// atomic addition and no look-up, and no alert has to tell "zero" from "never seen".
//
// Goroutines: the HTTP server's own, and one that samples readiness; both end when
// Server.Close returns.
package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Build says which program this is.
type Build struct{ Version, Revision, GoVersion string }

// Labels are the values of the labels whose series are addressed by index: the
// string at index i belongs to the class or reason of number i.
type Labels struct {
	Classes      []string
	FlushReasons []string
	Limits       []string
}

// Snapshot is the state of the proxy at one moment.
type Snapshot struct {
	Clients       int   `json:"clients"`
	InFlight      int   `json:"in_flight"`
	Lanes         int   `json:"lanes"`
	PrivateIdle   int   `json:"private_idle"`
	PrivateBusy   int   `json:"private_busy"`
	Control       int   `json:"control"`
	Commands      int64 `json:"commands"` // since the start
	BufferedBytes int64 `json:"buffered_bytes"`
	UpstreamUp    bool  `json:"upstream_up"`
	Draining      bool  `json:"draining"`
	// NotReady is why the server cannot serve although it is reachable, in its own
	// words; empty when it can.
	NotReady string `json:"upstream_not_ready"`
}

// otherLabel counts the words of an observer that are not listed here.
const otherLabel = "other"

// The words that events come with, which are rare enough to be looked up.
var (
	acceptResults = []string{"ok", "maxclients", "memory", "error", otherLabel}
	failReasons   = []string{"eof", "read", "write", "protocol", "timeout", "dial", "handshake", otherLabel}
	logLevels     = []string{"debug", "info", "warn", "error"}
)

// Metrics is every metric of the process in a registry of its own. Its methods may
// be called at any time from any goroutine, never block and do not allocate.
type Metrics struct {
	// Reclaim has the events of stream consumers.
	Reclaim *Reclaim

	registry *prometheus.Registry

	accepted       map[string]prometheus.Counter
	failed         map[string]prometheus.Counter
	logged         map[string]prometheus.Counter
	commands       []prometheus.Counter
	flushes        []prometheus.Counter
	limits         []prometheus.Counter
	received       prometheus.Counter
	sent           prometheus.Counter
	protocolErrors prometheus.Counter
	reconnects     prometheus.Counter
	pushes         prometheus.Counter
	duration       prometheus.Histogram
	overhead       prometheus.Histogram
	batchCommands  prometheus.Histogram
	batchBytes     prometheus.Histogram
	batchWait      prometheus.Histogram
	roundTrip      prometheus.Histogram
	privateWait    prometheus.Histogram
	flushDelay     prometheus.Gauge
}

// New registers every metric, together with those of the Go runtime and of the
// process. What the snapshots feed appears with Observe.
func New(b Build, l Labels) *Metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: prefix + buildInfo, Help: lookup(buildInfo).help,
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "go_version": b.GoVersion},
	})
	info.Set(1)
	r.MustRegister(info)
	return &Metrics{
		registry:       r,
		accepted:       byWord(r, clientConnsTotal, acceptResults),
		failed:         byWord(r, upstreamErrors, failReasons),
		logged:         byWord(r, logMessages, logLevels),
		commands:       byIndex(r, clientCommands, l.Classes),
		flushes:        byIndex(r, batchFlushes, l.FlushReasons),
		limits:         byIndex(r, clientLimits, l.Limits),
		received:       newCounter(r, clientReceived),
		sent:           newCounter(r, clientSent),
		protocolErrors: newCounter(r, clientProtoErrors),
		reconnects:     newCounter(r, upstreamReconnects),
		pushes:         newCounter(r, upstreamPushes),
		duration:       newHistogram(r, clientDuration),
		overhead:       newHistogram(r, proxyOverhead),
		batchCommands:  newHistogram(r, batchCommands),
		batchBytes:     newHistogram(r, batchBytes),
		batchWait:      newHistogram(r, batchWait),
		roundTrip:      newHistogram(r, upstreamRoundtrip),
		privateWait:    newHistogram(r, privateWait),
		flushDelay:     newGauge(r, flushDelay),
		Reclaim:        newReclaim(r),
	}
}

func newCounter(r *prometheus.Registry, name string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: lookup(name).help})
	r.MustRegister(c)
	return c
}

func newGauge(r *prometheus.Registry, name string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: lookup(name).help})
	r.MustRegister(g)
	return g
}

func newHistogram(r *prometheus.Registry, name string) prometheus.Histogram {
	m := lookup(name)
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + name, Help: m.help, Buckets: m.buckets})
	r.MustRegister(h)
	return h
}

// byIndex makes one counter for each value of the metric's label, in their order.
func byIndex(r *prometheus.Registry, name string, values []string) []prometheus.Counter {
	m := lookup(name)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: m.help}, []string{m.label})
	r.MustRegister(v)
	all := make([]prometheus.Counter, len(values))
	for i, value := range values {
		all[i] = v.WithLabelValues(value)
	}
	return all
}

// byWord is byIndex for events that are rare enough to be looked up by name.
func byWord(r *prometheus.Registry, name string, values []string) map[string]prometheus.Counter {
	counters := byIndex(r, name, values)
	m := make(map[string]prometheus.Counter, len(values))
	for i, value := range values {
		m[value] = counters[i]
	}
	return m
}

func countWord(m map[string]prometheus.Counter, word string) {
	c, ok := m[word]
	if !ok {
		c = m[otherLabel]
	}
	c.Inc()
}

// Accepted counts a client's attempt to connect: ok, maxclients, memory or error.
func (m *Metrics) Accepted(result string) { countWord(m.accepted, result) }

// Commands counts n commands of the class with index class.
func (m *Metrics) Commands(class, n int) { m.commands[class].Add(float64(n)) }

// Received counts bytes read from clients.
func (m *Metrics) Received(n int) { m.received.Add(float64(n)) }

// Sent counts bytes written to clients.
func (m *Metrics) Sent(n int) { m.sent.Add(float64(n)) }

// Served observes one sampled command: its whole duration, and the part of it that
// was not spent upstream.
func (m *Metrics) Served(total, overhead time.Duration) {
	m.duration.Observe(total.Seconds())
	m.overhead.Observe(overhead.Seconds())
}

// ProtocolError counts a client that does not speak the protocol.
func (m *Metrics) ProtocolError() { m.protocolErrors.Inc() }

// Limited counts a client that has met the limit with index limit.
func (m *Metrics) Limited(limit int) { m.limits[limit].Inc() }

// PrivateWait observes a wait for a private connection.
func (m *Metrics) PrivateWait(d time.Duration) { m.privateWait.Observe(d.Seconds()) }

// Flushed observes one batch that left for the reason with index reason.
func (m *Metrics) Flushed(reason, commands, bytes int, waited time.Duration) {
	m.flushes[reason].Inc()
	m.batchCommands.Observe(float64(commands))
	m.batchBytes.Observe(float64(bytes))
	m.batchWait.Observe(waited.Seconds())
}

// RoundTrip observes one sample of upstream's round trip.
func (m *Metrics) RoundTrip(d time.Duration) { m.roundTrip.Observe(d.Seconds()) }

// DelayChosen notes the flush delay now in force.
func (m *Metrics) DelayChosen(d time.Duration) { m.flushDelay.Set(d.Seconds()) }

// Failed counts an upstream connection that ended while it was wanted.
func (m *Metrics) Failed(reason string) { countWord(m.failed, reason) }

// Reconnected counts a shared connection that replaced a lost one.
func (m *Metrics) Reconnected() { m.reconnects.Inc() }

// PushDropped counts a push message for nobody.
func (m *Metrics) PushDropped() { m.pushes.Inc() }

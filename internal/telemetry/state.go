package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
)

// stateCollector turns one Snapshot into gauges at each scrape, so that the gauges of
// one scrape agree with each other and the data path keeps no gauge.
type stateCollector struct {
	snapshot func() Snapshot
	descs    map[string]*prometheus.Desc
}

// Observe registers the gauges that snapshot feeds. It is called once, when there is
// a proxy to ask.
func (m *Metrics) Observe(snapshot func() Snapshot) {
	c := &stateCollector{snapshot: snapshot, descs: map[string]*prometheus.Desc{}}
	for _, name := range []string{draining, clientConns, bufferedBytes, upstreamUp, upstreamInflight, upstreamConns, privateConns} {
		row := lookup(name)
		var labels []string
		if row.label != "" {
			labels = []string{row.label}
		}
		c.descs[name] = prometheus.NewDesc(prefix+name, row.help, labels, nil)
	}
	m.registry.MustRegister(c)
}

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.snapshot()
	emit := func(name string, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, float64(v), labels...)
	}
	emit(draining, oneIf(s.Draining))
	emit(clientConns, s.Clients)
	emit(bufferedBytes, int(s.BufferedBytes))
	emit(upstreamUp, oneIf(s.UpstreamUp))
	emit(upstreamInflight, s.InFlight)
	emit(upstreamConns, s.Lanes, "lane")
	emit(upstreamConns, s.PrivateIdle+s.PrivateBusy, "private")
	emit(upstreamConns, s.Control, "control")
	emit(privateConns, s.PrivateIdle, "idle")
	emit(privateConns, s.PrivateBusy, "busy")
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

package main

import (
	"log/slog"
	"strings"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/config"
	"streamproxy/internal/telemetry"
	"streamproxy/proxy"
	"streamproxy/reclaim"
)

// This file is where the rooms meet that do not know each other: the configuration
// becomes the proxy's, and the proxy's events become metrics.

// proxyConfig translates flags into the proxy's own terms. The error is that of the
// upstream URL.
func proxyConfig(c config.Config, m *telemetry.Metrics, log *slog.Logger) (proxy.Config, error) {
	target, err := c.Target()
	if err != nil {
		return proxy.Config{}, err
	}
	pc := proxy.Config{
		Upstream:        target,
		UpstreamConns:   c.UpstreamConns,
		MaxLanes:        c.MaxLanes,
		UpstreamTimeout: c.UpstreamTimeout,
		UpstreamWait:    c.UpstreamWait,
		DialTimeout:     c.DialTimeout,
		Flush: batcher.PolicyConfig{
			Auto:        c.MaxFlushDelay.Auto,
			Delay:       c.MaxFlushDelay.Value,
			MaxBytes:    int(c.FlushMaxBytes),
			MaxCommands: c.FlushMaxCommands,
		},
		PrivateMax:         c.PrivateMax,
		PrivateMinIdle:     c.PrivateMinIdle,
		SharedCommands:     c.SharedCommands,
		Deny:               c.Deny,
		MaxClients:         c.MaxClients,
		ClientIdleTimeout:  c.ClientIdleTimeout,
		ClientBufferLimit:  c.ClientBufferLimit,
		ClientStallTimeout: c.ClientStallTimeout,
		MaxArgs:            c.MaxArgs,
		MemoryLimit:        c.MemoryLimit.Value,
		RequirePass:        c.RequirePass(),
		Reclaim:            reclaimConfig(c, m, log),
		DrainMin:           c.DrainMin,
		DrainIdle:          c.DrainIdle,
		DrainTimeout:       c.DrainTimeout,
		Version:            build().Version,
		Effective:          func() string { return effective(c) },
		Logger:             log,
	}
	if c.TelemetryListen != config.TelemetryOff { // else nobody would read what is counted
		pc.Events, pc.BatchEvents = clientEvents(m), batchEvents(m)
	}
	return pc, nil
}

// reclaimConfig is what is done for consumers of streams.
func reclaimConfig(c config.Config, m *telemetry.Metrics, log *slog.Logger) reclaim.Config {
	return reclaim.Config{
		Mode:           c.ReclaimMode(),
		Interval:       c.ReclaimInterval,
		Groups:         c.ReclaimRules(),
		Locks:          c.ReclaimLock,
		KeyPrefix:      c.ReclaimKeyPrefix,
		MaxHeldEntries: c.ReclaimMaxHeldEntries,
		MaxHeldBytes:   c.ReclaimMaxHeldBytes,
		MaxClaimBytes:  c.MemoryLimit.Value / 4, // a claim is copied on its way
		Events:         reclaimEvents(m.Reclaim),
		Logger:         log,

		MaxRememberedBytes: c.MemoryLimit.Value / 4,
	}
}

// effective is the configuration in force as PROXY CONFIG shows it, without secrets.
func effective(c config.Config) string {
	var b strings.Builder
	c.WriteEffective(&b)
	return b.String()
}

// reclaimEvents feeds the metrics of stream consumers.
func reclaimEvents(m *telemetry.Reclaim) reclaim.Events {
	return reclaim.Events{
		Round:           m.Round,
		Succeeded:       m.Succeeded,
		Leases:          m.Leases,
		Local:           m.Local,
		Observed:        m.Observed,
		Forwarded:       m.Forwarded,
		Entries:         m.Entries,
		Hot:             m.Hot,
		Held:            m.Held,
		LargePEL:        m.LargePEL,
		ConsumerDeleted: m.ConsumerDeleted,
	}
}

// clientEvents feeds the metrics of clients. Closed is not needed: the number of open
// connections comes with the snapshot.
func clientEvents(m *telemetry.Metrics) proxy.Events {
	return proxy.Events{
		Accepted:      m.Accepted,
		Commands:      func(class proxy.Class, n int) { m.Commands(int(class), n) },
		Received:      m.Received,
		Sent:          m.Sent,
		Served:        m.Served,
		ProtocolError: m.ProtocolError,
		Limited:       func(l proxy.Limit) { m.Limited(int(l)) },
		PrivateWait:   m.PrivateWait,
	}
}

// batchEvents feeds the metrics of upstream connections. Opened and Closed are not
// needed, as above.
func batchEvents(m *telemetry.Metrics) batcher.Events {
	return batcher.Events{
		Flushed: func(r batcher.FlushReason, commands, bytes int, waited time.Duration) {
			m.Flushed(int(r), commands, bytes, waited)
		},
		RoundTrip:   m.RoundTrip,
		DelayChosen: m.DelayChosen,
		Failed:      m.Failed,
		Reconnected: m.Reconnected,
		PushDropped: m.PushDropped,
	}
}

// labels names the classes and reasons by their numbers.
func labels() telemetry.Labels {
	return telemetry.Labels{Classes: names(proxy.Classes()), FlushReasons: names(batcher.FlushReasons()), Limits: names(proxy.Limits())}
}

// names puts each value's name at the index that its number is.
func names[T interface {
	~uint8
	String() string
}](all []T) []string {
	list := make([]string, len(all))
	for _, v := range all {
		list[v] = v.String()
	}
	return list
}

// snapshot translates the proxy's state for metrics and probes.
func snapshot(p *proxy.Proxy) telemetry.Snapshot {
	s := p.Stats()
	return telemetry.Snapshot{
		Clients: s.Clients, InFlight: s.InFlight,
		Lanes: s.Lanes, PrivateIdle: s.PrivateIdle, PrivateBusy: s.PrivateBusy, Control: s.Control,
		Commands: s.Commands, BufferedBytes: s.BufferedBytes, UpstreamUp: s.UpstreamUp, Draining: s.Draining,
		NotReady: s.UpstreamNotReady,
	}
}

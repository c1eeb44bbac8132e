package top

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// stats is what is shown of /stats.json: what /metrics does not have, and what there is
// where that is off.
type stats struct {
	Version       string  `json:"version"`
	UptimeSeconds float64 `json:"uptime_seconds"`
	Clients       float64 `json:"clients"`
	InFlight      float64 `json:"in_flight"`
	Lanes         float64 `json:"lanes"`
	PrivateIdle   float64 `json:"private_idle"`
	PrivateBusy   float64 `json:"private_busy"`
	Control       float64 `json:"control"`
	Commands      float64 `json:"commands"`
	BufferedBytes float64 `json:"buffered_bytes"`
	UpstreamUp    bool    `json:"upstream_up"`
	Draining      bool    `json:"draining"`
	NotReady      string  `json:"upstream_not_ready"`
}

// reading is what the pages say at one time.
type reading struct {
	at      time.Time
	metrics series // nil: no such page, or no answer
	stats   *stats // likewise
}

// Of one process, administration begins after the process does, by what the start takes,
// and the system tells the time of that in whole seconds.
const (
	startsEarlier = 2 * time.Second
	startsLater   = 5 * time.Second
)

// another reports whether the pages are of two processes: a second proxy goes without
// administration where the first has its address.
func (r reading) another() bool {
	began, known := r.metrics[processStart][""]
	if r.stats == nil || !known || r.stats.UptimeSeconds == 0 {
		return false
	}
	later := time.Duration((float64(r.at.UnixMilli())/1000 - r.stats.UptimeSeconds - began) * float64(time.Second))
	return later < -startsEarlier || later > startsLater
}

// errNobody is the error of a reading for which there is nobody to ask.
var errNobody = errors.New("telemetry and administration are both off, so there is nobody to ask")

// read asks for both pages. One that does not answer is left out, and so are the stats
// of another process; an error says that neither does.
func (o *Options) read(ctx context.Context) (reading, error) {
	r := reading{}
	var errs []error
	if o.Metrics.URL != "" {
		page, err := o.Metrics.read(ctx)
		if err == nil {
			r.metrics = parseSeries(page)
		}
		errs = append(errs, err)
	}
	if o.Stats.URL != "" {
		page, err := o.Stats.read(ctx)
		if err == nil {
			r.stats = new(stats)
			err = json.Unmarshal(page, r.stats)
		}
		errs = append(errs, err)
	}
	r.at = time.Now()
	if r.another() {
		r.stats = nil
	}
	switch {
	case len(errs) == 0:
		return r, errNobody
	case r.metrics == nil && r.stats == nil:
		return r, errors.Join(errs...)
	}
	return r, nil
}

// gauges is the stats of the reading, put together from its metrics where the other
// page did not answer.
func (r reading) gauges() stats {
	if r.stats != nil {
		return *r.stats
	}
	m := r.metrics
	return stats{
		Clients: m.sum("client_connections"), InFlight: m.sum("upstream_inflight_commands"),
		Lanes: m.at("upstream_connections", "kind", "lane"), Control: m.at("upstream_connections", "kind", "control"),
		PrivateIdle: m.at("private_connections", "state", "idle"), PrivateBusy: m.at("private_connections", "state", "busy"),
		Commands: m.sum("client_commands_total"), BufferedBytes: m.sum("buffered_bytes"),
		UpstreamUp: m.sum("upstream_up") > 0, Draining: m.sum("draining") > 0,
	}
}

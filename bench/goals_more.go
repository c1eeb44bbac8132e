package main

import (
	"math"
	"strings"

	"streamproxy/bench/internal/result"
)

// rate holds goals S4 and S5 against one cell.
func (j *judgement) rate(c *result.Cell) {
	if c.Trip != "" {
		j.trips(c)
		return
	}
	direct := c.Of("direct")
	if direct == nil {
		return
	}
	base := direct.Median(result.RedisCPU)
	both := func(s *result.Series) float64 { return s.Median(result.RedisCPU) + s.Median(result.ProxyCPU) }
	if tcp := c.Of(longDelay); tcp != nil {
		j.add("S4", c.Name()+": Redis CPU against direct", tcp.Median(result.RedisCPU)/base, 0.15, false, false)
		j.add("S4", c.Name()+": proxy and Redis CPU against direct", both(tcp)/base, 1.15, false, false)
	}
	if unix := c.Of(unixDelay); unix != nil {
		j.add("S4", c.Name()+": the same, clients on the unix socket", both(unix)/base, 0.9, false, false)
	}
}

// trips holds the automatic delay against direct connections and the best fixed delay.
func (j *judgement) trips(c *result.Cell) {
	auto, direct := c.Of(autoDelay+c.Trip), c.Of("direct:rtt="+c.Trip)
	if auto == nil {
		return
	}
	if direct != nil {
		p50 := direct.Median(result.P50)
		j.add("S5", c.Name()+": p50 added by auto, µs", auto.Median(result.P50)-p50, max(p50/20, 10), false, true)
	}
	best := math.Inf(1)
	for i := range c.Series {
		if s := &c.Series[i]; strings.HasPrefix(s.Side, autoDelay+c.Trip+":max-flush-delay=") {
			best = min(best, s.Median(result.RedisCPU))
		}
	}
	if c.Trip == "28ms" && !math.IsInf(best, 1) {
		j.add("S5", c.Name()+": Redis CPU of auto against the best fixed delay", auto.Median(result.RedisCPU)/best, 1.2, false, true)
	}
}

// large holds goal S7 against one cell.
func (j *judgement) large(c *result.Cell) {
	ours, direct := c.Of("streamproxy"), c.Of("direct")
	if ours == nil {
		return
	}
	if strings.HasSuffix(c.Title, sixteen) && direct != nil {
		j.add("S7", c.Title+": throughput against direct", ours.Median(result.More(megabytes))/direct.Median(result.More(megabytes)), 0.8, true, false)
	}
	if c.Title != alone {
		j.add("S7", c.Title+": proxy's memory above idle, MiB", ours.Median(result.More(aboveIdle)), 64, false, false)
	}
	if strings.HasPrefix(c.Title, beside) {
		for i := range j.report.Cells {
			if quiet := &j.report.Cells[i]; quiet.Title == alone && quiet.Of("streamproxy") != nil {
				j.add("S7", c.Title+": p99 of the small ones against alone", ours.Median(result.More(smallP99))/quiet.Of("streamproxy").Median(result.More(smallP99)), 2, false, false)
			}
		}
	}
}

// crowd holds goal S8 against one cell.
func (j *judgement) crowd(c *result.Cell) {
	for i := range c.Series {
		s := &c.Series[i]
		j.add("S8", c.Title+": KiB for each idle client", s.Median(result.More(perClient)), 12, false, false)
		j.add("S8", c.Title+": memory 30 s after a burst against idle", s.Median(result.More(overIdle)), 2, false, false)
	}
}

// wide holds goal S9 against one cell.
func (j *judgement) wide(c *result.Cell) {
	ours, direct := c.Of("streamproxy"), c.Of("direct")
	if ours == nil {
		return
	}
	if c.Keys == 10_000 && direct != nil {
		j.add("S9", c.Name()+": p50 against direct", ours.Median(result.P50)/direct.Median(result.P50), 1.2, false, false)
	}
	for i := range j.report.Cells {
		if tenth := &j.report.Cells[i]; tenth.Keys*10 == c.Keys && c.Keys >= 100_000 && tenth.Of("streamproxy") != nil {
			j.add("S9", c.Name()+": p50 against ten times fewer keys", ours.Median(result.P50)/tenth.Of("streamproxy").Median(result.P50), 12, false, false)
		}
	}
}

// metrics holds goal S12 against one cell.
func (j *judgement) metrics(c *result.Cell) {
	on, off := c.Of("streamproxy"), c.Of(unobserved)
	if on != nil && off != nil {
		j.add("S12", c.Name()+": proxy CPU with metrics against without", on.Median(result.ProxyCPU)/off.Median(result.ProxyCPU), 1.03, false, false)
	}
}

package telemetry

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The words that reclaim's events come with.
var (
	reclaimResults = []string{"led", "followed", "failed", "denied", otherLabel}
	localCommands  = []string{"xautoclaim", "multi", "get", "set", "evalsha", "script", otherLabel}
	forwardReasons = []string{"unknown", "expired", "form", "start", "min_idle", "denied", "draining", "unsent", "refused", "large", "observe", otherLabel}
	observeResults = []string{"same", "differed"}
	entryActions   = []string{"claimed", "delivered", "given_back", "deleted"}
)

// maxGroups is for how many pairs of stream and group there are series of their own;
// the rest share one. So no client can make the registry grow by inventing names.
const maxGroups = 100

// maxGroupName bounds the bytes of a stream's and of a group's name in a label.
const maxGroupName = 128

// otherGroups is stream and group of the series that the rest shares.
const otherGroups = "__other__"

// streamGroup names a stream and a group of it.
type streamGroup struct{ stream, group string }

// Reclaim is the metrics of what is done for consumers of streams. As with Metrics,
// an event costs an addition to a series that is found already.
type Reclaim struct {
	rounds    map[string]prometheus.Counter
	local     map[string]prometheus.Counter
	forwarded map[string]prometheus.Counter
	observed  map[string]prometheus.Counter
	leases    prometheus.Gauge
	hot       prometheus.Gauge
	entries   prometheus.Gauge
	bytes     prometheus.Gauge
	success   prometheus.Gauge
	deleted   prometheus.Counter

	moved *prometheus.CounterVec
	scan  *prometheus.GaugeVec

	mu     sync.Mutex
	groups map[streamGroup]map[string]prometheus.Counter
	// scans are the groups that are read page by page, and how long that takes.
	scans map[streamGroup]time.Duration
}

func newReclaim(r *prometheus.Registry) *Reclaim {
	c := &Reclaim{
		rounds:    byWord(r, reclaimRounds, reclaimResults),
		local:     byWord(r, reclaimLocal, localCommands),
		forwarded: byWord(r, reclaimForwarded, forwardReasons),
		observed:  byWord(r, reclaimObserved, observeResults),
		leases:    newGauge(r, reclaimLeases),
		hot:       newGauge(r, reclaimHot),
		entries:   newGauge(r, reclaimHeldEntries),
		bytes:     newGauge(r, reclaimHeldBytes),
		success:   newGauge(r, reclaimSuccess),
		deleted:   newCounter(r, reclaimLost),
		moved: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: prefix + reclaimEntries, Help: lookup(reclaimEntries).help}, []string{"action", "stream", "group"}),
		scan: prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: prefix + reclaimScan, Help: lookup(reclaimScan).help}, []string{"stream", "group"}),
		groups: map[streamGroup]map[string]prometheus.Counter{},
		scans:  map[streamGroup]time.Duration{},
	}
	r.MustRegister(c.moved, c.scan)
	rest := streamGroup{otherGroups, otherGroups}
	c.groups[rest] = c.resolve(rest)
	c.scan.WithLabelValues(rest.stream, rest.group).Set(0)
	return c
}

// resolve makes the series of one pair.
func (c *Reclaim) resolve(g streamGroup) map[string]prometheus.Counter {
	m := make(map[string]prometheus.Counter, len(entryActions))
	for _, action := range entryActions {
		m[action] = c.moved.WithLabelValues(action, g.stream, g.group)
	}
	return m
}

// group returns the pair whose series count a stream and group: its own for the first
// ones, else the shared one. The lock is held.
func (c *Reclaim) group(stream, group string) streamGroup {
	rest := streamGroup{otherGroups, otherGroups}
	if len(stream) > maxGroupName || len(group) > maxGroupName {
		return rest
	}
	// Redis allows any bytes in a name, labels do not.
	g := streamGroup{strings.ToValidUTF8(stream, "\uFFFD"), strings.ToValidUTF8(group, "\uFFFD")}
	if c.groups[g] != nil {
		return g
	}
	if len(c.groups) > maxGroups {
		return rest
	}
	c.groups[g] = c.resolve(g)
	return g
}

// Round counts the end of a round by its result.
func (c *Reclaim) Round(result string) { countWord(c.rounds, result) }

// Succeeded notes the server's time of the result last taken over.
func (c *Reclaim) Succeeded(at time.Time) { c.success.Set(float64(at.UnixMilli()) / 1000) }

// Leases notes how many leases are held.
func (c *Reclaim) Leases(n int) { c.leases.Set(float64(n)) }

// Local counts a command that was answered here.
func (c *Reclaim) Local(command string) { countWord(c.local, command) }

// Observed counts a command that would have been answered here, and whether the
// server's answer was another one.
func (c *Reclaim) Observed(_ string, differed bool) {
	result := observeResults[0]
	if differed {
		result = observeResults[1]
	}
	c.observed[result].Inc()
}

// Forwarded counts a command of a reclaim pass that was left to the server.
func (c *Reclaim) Forwarded(reason string) { countWord(c.forwarded, reason) }

// Entries counts what became of n entries.
func (c *Reclaim) Entries(action, stream, group string, n int) {
	c.mu.Lock()
	counter := c.groups[c.group(stream, group)][action]
	c.mu.Unlock()
	if counter != nil {
		counter.Add(float64(n))
	}
}

// Hot notes how many profiles have entries to be claimed.
func (c *Reclaim) Hot(n int) { c.hot.Set(float64(n)) }

// Held notes what is held for consumers that are about to ask for it.
func (c *Reclaim) Held(entries int, bytes int64) {
	c.entries.Set(float64(entries))
	c.bytes.Set(float64(bytes))
}

// LargePEL notes how long it takes to look at all pending entries of a group that is
// read page by page; 0 entries says that it is not, or no longer.
func (c *Reclaim) LargePEL(stream, group string, entries int64, full time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.group(stream, group)
	key := streamGroup{stream, group}
	if entries > 0 {
		c.scans[key] = full
	} else {
		delete(c.scans, key)
	}
	longest := time.Duration(0)
	for k, d := range c.scans {
		if c.group(k.stream, k.group) == g {
			longest = max(longest, d)
		}
	}
	if longest == 0 && g.stream != otherGroups {
		c.scan.DeleteLabelValues(g.stream, g.group)
		return
	}
	c.scan.WithLabelValues(g.stream, g.group).Set(longest.Seconds())
}

// ConsumerDeleted counts pending entries that went with their consumer.
func (c *Reclaim) ConsumerDeleted(n int64) { c.deleted.Add(float64(n)) }

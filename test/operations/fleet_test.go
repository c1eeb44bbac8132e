//go:build operations

package operations

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"streamproxy/internal/proxytest"
	"streamproxy/internal/redistest"
)

// member is one proxy of a fleet with its two clients.
type member struct {
	*proxytest.Process
	calls  caller
	asks   *redistest.Client
	failed error // of the asking worker
}

// ask reads a stream and asks for abandoned entries, as a worker does between two tasks.
func (m *member) ask(name string, stop <-chan struct{}) {
	tick := time.NewTicker(4 * pace)
	defer tick.Stop()
	for {
		for _, command := range []string{
			"XREADGROUP GROUP g " + name + " STREAMS s >",
			"XAUTOCLAIM s g " + name + " 60000 0-0",
		} {
			if _, m.failed = m.asks.Do(strings.Fields(command)...); m.failed != nil {
				return
			}
		}
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

// A fleet of proxies, the shipped binary each, loses its server and gets it back. While it is away the
// dials of all of them together are those of each; when it is back they do not all come in the
// same instant, every client recovers, and one proxy has the lease again.
func TestFleetRestart(t *testing.T) {
	size, away := 12, 3*time.Second
	if long() {
		size, away = 100, 10*time.Second
	}
	const interval = time.Second
	server := redistest.Start(t, redistest.WithArgs("--appendonly", "yes"))
	server.Do("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
	d := openDoor(t, server.Addr())
	fleet := make([]member, size)
	stop := make(chan struct{})
	var working sync.WaitGroup
	defer working.Wait()
	ended := sync.OnceFunc(func() { close(stop) })
	defer ended()
	for i := range fleet {
		m := &fleet[i]
		m.Process = proxytest.Start(t, "redis://"+d.addr, "--reclaim-interval="+interval.String()).Ready()
		m.calls.conn, m.asks = m.Client(), m.Client()
		working.Go(func() { m.calls.call(stop) })
		working.Go(func() { m.ask("w"+strconv.Itoa(i), stop) })
	}
	oneLease(t, fleet)
	d.settle(t, size)
	calm := leaseTraffic(server, size, 3*interval)

	died := time.Now()
	d.close()
	server.Kill()
	wait(away)
	from := died.Add(time.Second) // the first attempts are quick ones
	dials := float64(d.between(from, time.Now())) / time.Since(from).Seconds()
	server.Restart()
	back := d.open()
	proxytest.Eventually(t, "a good reply for every caller", func() bool {
		for i := range fleet {
			if fleet[i].calls.recovered.Load() < back.UnixNano() && !fleet[i].calls.closed.Load() {
				return false
			}
		}
		return true
	})
	d.settle(t, size)
	last, settled := time.Duration(0), time.Now()
	for i := range fleet {
		last = max(last, time.Unix(0, fleet[i].calls.recovered.Load()).Sub(back))
	}
	oneLease(t, fleet)
	again := leaseTraffic(server, size, 3*interval)
	ended()
	working.Wait()
	for i := range fleet {
		if m := &fleet[i]; m.calls.failed != nil || m.failed != nil {
			t.Errorf("a client was closed: %v, %v", m.calls.failed, m.failed)
		}
	}
	came, peak := d.between(back, settled), d.peak(100*time.Millisecond, back, settled)
	t.Logf("%d proxies; away: %.1f dials a second of all, %.1f of each", size, dials, dials/float64(size))
	t.Logf("back: %d dials, at most %d in 100ms; the last client's first good reply after %v", came, peak, last.Round(time.Millisecond))
	t.Logf("lease: %.2f commands of each proxy an interval before, %.2f after", calm, again)
	if dials > 10*float64(size) || dials == 0 {
		t.Errorf("%.1f dials a second of %d proxies", dials, size)
	}
	if calm > 3 || again > 3 {
		t.Errorf("%.2f and %.2f commands of each proxy an interval", calm, again)
	}
}

// oneLease waits until exactly one proxy holds the lease of the workers' stream.
func oneLease(t *testing.T, fleet []member) {
	t.Helper()
	proxytest.Eventually(t, "one proxy has the lease", func() bool {
		held := 0.0
		for i := range fleet {
			held += fleet[i].Metric("streamproxy_reclaim_lease_held")
		}
		return held == 1
	})
}

// leaseTraffic is how many commands of the lease the server executes in a stretch of time, for each
// proxy and second, which is the interval of this fleet.
func leaseTraffic(server *redistest.Server, size int, stretch time.Duration) float64 {
	count := func() (calls int) {
		for line := range strings.Lines(server.Do("INFO", "commandstats")) {
			name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
			switch name {
			case "eval", "evalsha": // the lease is looked at and taken by scripts
				digits, _, _ := strings.Cut(rest, ",")
				n, _ := strconv.Atoi(digits) // the server writes numbers
				calls += n
			}
		}
		return calls
	}
	before, began := count(), time.Now()
	wait(stretch)
	return float64(count()-before) / time.Since(began).Seconds() / float64(size)
}

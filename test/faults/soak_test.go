//go:build faults

package faults

import (
	"fmt"
	"testing"
	"time"
)

const (
	// soakClients is how many clients there are.
	soakClients = 500
	// warmUp is how long they work before anything breaks.
	warmUp = 5 * time.Second
	// quiet is how long nothing happens before the proxy is measured.
	quiet = 10 * time.Second
)

// soakResult is what a soak measured beside its ledgers.
type soakResult struct {
	Seconds float64 `json:"seconds"` // of faults
	Before  level   `json:"before"`  // at rest after the warm-up
	After   level   `json:"after"`   // at rest after the faults
	// Memory of the process over the time of faults, in bytes: the means of the first and of the last
	// part, a minute each or a third of a run that is shorter, and the peak.
	FirstRSS int64 `json:"first_rss"`
	LastRSS  int64 `json:"last_rss"`
	PeakRSS  int64 `json:"peak_rss"`
}

// level is what the proxy holds while all its clients rest.
type level struct {
	Clients     int   `json:"clients"`
	Goroutines  int   `json:"goroutines"`  // beside one for each client
	Descriptors int   `json:"descriptors"` // beside those of clients and upstream connections
	Upstream    int   `json:"upstream"`    // connections to the server
	Heap        int64 `json:"heap"`        // bytes that survive a collection
	RSS         int64 `json:"rss"`         // bytes of the process
}

// TestSoak breaks the world of 500 clients for a while, and wants to find the proxy as it was: as
// much memory, as many goroutines, descriptors and connections as after the warm-up. The short form
// is part of CI; make soak runs ten minutes.
func TestSoak(t *testing.T) {
	p := plan{seed: firstSeed(), durable: true, clients: or(*clientsFlag, soakClients), time: or(*timeFlag, 30*time.Second),
		gap: or(*gapFlag, 2*time.Second), think: 20 * time.Millisecond, only: *onlyFlag}
	l := startLab(t, p)
	l.populate()
	<-time.After(warmUp)
	l.soak = &soakResult{Seconds: l.time.Seconds(), Before: l.level(t)}
	watched := l.watchMemory()
	l.breakThings()
	watched()
	l.soak.After = l.level(t)
	for _, complaint := range l.soak.complaints(l.time) {
		t.Error(complaint)
	}
	l.finish()
	if code := l.proxy.terminate(); code != 0 {
		t.Errorf("the proxy ended with exit code %d", code)
	}
	l.report(t)
	t.Logf("before: %+v", l.soak.Before)
	t.Logf("after:  %+v", l.soak.After)
	t.Logf("memory: first %d, last %d, peak %d bytes", l.soak.FirstRSS, l.soak.LastRSS, l.soak.PeakRSS)
}

// level lets the clients rest and measures.
func (l *lab) level(t *testing.T) level {
	t.Helper()
	wake := l.repose()
	defer wake()
	<-time.After(quiet)
	m := l.collected(t)
	rss, err := l.proxy.rss()
	if err != nil {
		t.Fatal(err)
	}
	clients := int(m["streamproxy_client_connections"])
	upstream := 0
	for _, kind := range []string{"lane", "private", "control"} {
		upstream += int(m[fmt.Sprintf("streamproxy_upstream_connections{kind=%q}", kind)])
	}
	return level{Clients: clients, Goroutines: int(m["go_goroutines"]) - clients,
		Descriptors: int(m["process_open_fds"]) - clients - upstream, Upstream: upstream,
		Heap: int64(m["go_memstats_next_gc_bytes"]) / 2, RSS: rss}
}

// collected asks for the metrics until that very work has made the proxy collect its garbage twice:
// what is left is in use. The heap's size after a collection is half of the size at which the
// next one comes.
func (l *lab) collected(t *testing.T) map[string]float64 {
	t.Helper()
	first := -1.0
	for deadline := time.Now().Add(patience); ; {
		m, err := l.proxy.metrics()
		if err != nil {
			t.Fatal(err)
		}
		count := m["go_gc_duration_seconds_count"]
		if first < 0 {
			first = count
		}
		if count >= first+2 {
			return m
		}
		if time.Now().After(deadline) {
			t.Fatalf("no collection within %v", patience)
		}
	}
}

// watchMemory samples the process's memory until the returned func is called.
func (l *lab) watchMemory() (end func()) {
	var samples []int64
	over, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends with over
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if rss, err := l.proxy.rss(); err == nil {
					samples = append(samples, rss)
				}
			case <-over:
				return
			}
		}
	}()
	return func() {
		close(over)
		<-ended
		part := min(60, len(samples)/3)
		l.soak.FirstRSS, l.soak.LastRSS = mean(samples[:part]), mean(samples[len(samples)-part:])
		for _, s := range samples {
			l.soak.PeakRSS = max(l.soak.PeakRSS, s)
		}
	}
}

func mean(samples []int64) (sum int64) {
	for _, s := range samples {
		sum += s
	}
	return sum / int64(max(len(samples), 1))
}

// complaints lists what is not as it was. Spare connections are kept as lately needed, and each has
// a goroutine: hence the room beside the level before.
func (r *soakResult) complaints(faults time.Duration) (list []string) {
	room := func(what string, before, after, slack int64) {
		if after > before+slack {
			list = append(list, fmt.Sprintf("%s: %d, and %d after the warm-up", what, after, before))
		}
	}
	b, a := r.Before, r.After
	room("upstream connections", int64(b.Upstream), int64(a.Upstream), int64(b.Upstream/10+8))
	room("descriptors beside connections", int64(b.Descriptors), int64(a.Descriptors), 4)
	room("goroutines beside those of clients", int64(b.Goroutines), int64(a.Goroutines), int64(b.Goroutines/10+16))
	room("heap after a collection", b.Heap, a.Heap, b.Heap/4+4<<20)
	if faults >= 3*time.Minute {
		room("memory in the last minute against 1.5 times the first's", r.FirstRSS*3/2, r.LastRSS, 0)
	}
	return list
}

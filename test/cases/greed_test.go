//go:build cases

package cases

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// long asks for the forms of cases that take minutes, see docs/tuning.md for what they found.
func long() bool { return os.Getenv("CASES_LONG") == "1" }

// unread is how many bytes a greedy client asks for and does not read.
func unread() int {
	if long() {
		return 1 << 30
	}
	return 200 << 20
}

// unhurried is how long a neighbour may wait on a machine that does other things too: without care
// it would wait for ever. The long form is run where nothing else is.
func unhurried() time.Duration {
	if long() {
		return limit
	}
	return time.Minute
}

// greedy connects a client that will not read, and whose kernel does not do it in its place.
func (p *process) greedy() *client {
	p.t.Helper()
	c := p.client()
	_ = c.Conn.(*net.TCPConn).SetReadBuffer(32 << 10)
	return c
}

// A client asks for a gigabyte and reads nothing of it: as one reply, or as many. What is kept for
// it stays within its limit, and its neighbour does not wait.
func TestCase33GigabyteUnread(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	s := redistest.Start(t)
	s.Do("SET", "big", strings.Repeat("v", size))
	s.Do("SET", "k", "v")
	for _, way := range []struct{ name, request string }{
		{"one reply", redistest.Command(append([]string{"MGET"}, strings.Fields(strings.Repeat("big ", unread()/size))...)...)},
		{"many replies", strings.Repeat(redistest.Command("GET", "big"), unread()/size)},
	} {
		t.Run(way.name, func(t *testing.T) {
			p := startProcess(t, s.Addr())
			neighbour := p.client()
			neighbour.Timeout = unhurried()
			neighbour.gets(bulk("v"), "GET", "k")
			before := p.resident()
			p.greedy().sends(way.request)
			peak, slowest, n := watched(p, neighbour, 3*time.Second)
			t.Logf("%d MiB unread: resident %d KiB before, %d at most; the neighbour's %d GETs took up to %v", unread()>>20, before>>10, peak>>10, n, slowest)
			// What a client may owe is 64 MiB; the collector lets garbage double it.
			if peak > before+2*64<<20+32<<20 {
				t.Errorf("%d KiB are resident", peak>>10)
			}
			if slowest > unhurried() {
				t.Errorf("a neighbour's GET took %v", slowest)
			}
		})
	}
}

// Clients ask for a gigabyte each and read nothing. The memory limit holds them back, ends the
// greediest, and never the process; a client that reads is served all the while, and new ones are.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	const size = 500_000
	crowd, each, memory := 40, 8<<20, int64(16<<20)
	if long() {
		crowd, each, memory = 1000, unread(), 256<<20
	}
	s := redistest.Start(t)
	s.Do("SET", "big", strings.Repeat("v", size))
	s.Do("SET", "k", "v")
	p := startProcess(t, s.Addr(), fmt.Sprintf("--memory-limit=%d", memory))
	neighbour := p.client()
	neighbour.Timeout = unhurried()
	neighbour.gets(bulk("v"), "GET", "k")
	before := p.resident()
	request := strings.Repeat(redistest.Command("GET", "big"), each/size)
	var greedy []*client
	for range crowd {
		c := p.greedy()
		c.sends(request)
		greedy = append(greedy, c)
	}
	peak, slowest, n := watched(p, neighbour, 5*time.Second)
	t.Logf("%d clients with %d MiB unread each: resident %d KiB before, %d at most; the neighbour's %d GETs took up to %v", crowd, each>>20, before>>10, peak>>10, n, slowest)
	// The collector lets garbage double it, later on a busy machine, and what is on its way is not
	// counted yet.
	if peak > before+4*memory {
		t.Errorf("%d KiB are resident with a limit of %d", peak>>10, memory>>10)
	}
	if slowest > unhurried() {
		t.Errorf("a neighbour's GET took %v", slowest)
	}
	if !strings.Contains(p.Log(), `"limit":"memory"`) {
		t.Error("nobody was refused")
	}
	late := p.client()
	late.Timeout = unhurried()
	late.gets(bulk("v"), "GET", "k")
	for _, c := range greedy {
		reset(c.Conn)
	}
	within(t, time.Minute, "only those that read are left", func() bool {
		return strings.Contains(neighbour.ask("PROXY", "STATS"), "\nclients:2\r\n") // the late one is here too
	})
	p.client().gets(bulk("v"), "GET", "k")
}

// watched lets a neighbour ask for d, and returns the most memory that was resident meanwhile, and
// the slowest of how many replies.
func watched(p *process, neighbour *client, d time.Duration) (peak int64, slowest time.Duration, n int) {
	p.t.Helper()
	for start := time.Now(); time.Since(start) < d; n++ {
		at := time.Now()
		neighbour.gets(bulk("v"), "GET", "k")
		slowest = max(slowest, time.Since(at))
		peak = max(peak, p.resident())
		p.alive()
	}
	return peak, slowest, n
}

//go:build cases

package cases

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// Clients come in crowds, each asks for many large values in one pipeline and resets its connection
// before it gets them. What they leave behind must not stand in front of who asks for a small value:
// directly connected the server drops it with the connection.
func TestStormOfReadersThatReset(t *testing.T) {
	crowd := 300
	if long() {
		crowd = 3000
	}
	const size = 1_000_000
	s := redistest.Start(t, redistest.WithArgs("--maxmemory-clients", "4gb")) // rather than all that the machine has
	s.Do("SET", "big", strings.Repeat("v", size))
	s.Do("SET", "k", "v")
	request := strings.Repeat(redistest.Command("GET", "big"), 20)
	direct := storm(t, s.Addr(), crowd, request)
	proxied := storm(t, startProcess(t, s.Addr()).Addr, crowd, request)
	t.Logf("%d clients asked for 20 MB each and reset: the slowest GET of a neighbour took %v, directly connected %v", crowd, proxied, direct)
	if proxied > 10*direct+10*time.Second {
		t.Errorf("a neighbour's GET took %v, directly connected %v", proxied, direct)
	}
}

// Each of a crowd asks for one thing that keeps the server busy for some milliseconds, and resets its
// connection before it gets it. Most of that is not run, and a client that comes then does not wait for it.
func TestStormOfSlowCommandsOfClientsThatReset(t *testing.T) {
	const crowd, items = 1000, 500_000
	s := redistest.Start(t)
	for range items / 5000 {
		s.Do(slices.Concat([]string{"RPUSH", "list"}, slices.Repeat([]string{"item"}, 5000))...)
	}
	s.Do("SET", "k", "v")
	p := startProcess(t, s.Addr())
	slowest := storm(t, p.Addr, crowd, redistest.Command("LPOS", "list", "none"))
	at := time.Now()
	late := connect(t, p.Addr)
	late.Timeout = 5 * time.Minute
	late.gets(bulk("v"), "GET", "k")
	waited := time.Since(at)
	run := 0
	if _, err := fmt.Sscanf(s.Info("commandstats", "cmdstat_lpos"), "calls=%d", &run); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d commands were run; a neighbour waited %v at most, a client that came then %v", run, crowd, slowest, waited)
	if run > crowd*3/4 {
		t.Errorf("%d of %d commands were run for clients that had left", run, crowd)
	}
}

// storm returns how long the slowest GET of a neighbour took while the crowd came and went, and
// until one GET of a client that came behind it.
func storm(t *testing.T, addr string, crowd int, request string) (slowest time.Duration) {
	t.Helper()
	neighbour := connect(t, addr)
	neighbour.Timeout = 5 * time.Minute
	neighbour.gets(bulk("v"), "GET", "k")
	var left atomic.Int64
	left.Store(int64(crowd))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { // ends with the crowd
			for left.Add(-1) >= 0 {
				c, err := redistest.Dial(addr)
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.Send(request)
				time.Sleep(time.Millisecond)
				reset(c.Conn)
			}
		})
	}
	gone := make(chan struct{})
	go func() { wg.Wait(); close(gone) }()
	for over := false; !over; {
		select {
		case <-gone:
			over = true
		default:
		}
		at := time.Now()
		neighbour.gets(bulk("v"), "GET", "k")
		slowest = max(slowest, time.Since(at))
	}
	return slowest
}

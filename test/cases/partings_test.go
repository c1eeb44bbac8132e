//go:build cases

package cases

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"streamproxy/internal/config"
	"streamproxy/internal/redistest"
)

// A client whose pipeline is full waits for room, and resets meanwhile: its session ends with what
// it has in flight, at the latest when the silent server is given up, and takes its goroutines along.
func TestCase13FullPipelineAndReset(t *testing.T) {
	s := redistest.Start(t)
	f := startProxy(t, s.Addr(), timeout(time.Second))
	f.client().gets("+PONG\r\n", "PING")
	awaitSpares(t, f)
	goroutines := runtime.NumGoroutine()
	s.Stop()
	defer s.Cont()
	for _, addr := range []string{f.tcp, f.unix, f.tcp, f.unix} {
		c := connect(t, addr)
		c.Timeout = 200 * time.Millisecond
		flood := strings.Repeat(redistest.Command("GET", "k"), 1000)
		for c.Send(flood) == nil {
			continue
		}
		reset(c.Conn)
	}
	eventually(t, "the sessions end while the server is stopped", func() bool { return f.Stats().Clients == 1 })
	// Three more than before may be dialling; four sessions would be four.
	eventually(t, "their goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines+3 })
}

// The number of threads follows the cgroup's limit, and not the host's 64 processors.
func TestCase18ProcessorsOfTheCgroup(t *testing.T) {
	t.Parallel()
	for quota, want := range map[string]float64{"100000 100000": 1, "50000 100000": 0.5, "max 100000": 64} {
		m := config.ReadMachine(fstest.MapFS{
			"proc/self/cgroup":      {Data: []byte("0::/\n")},
			"sys/fs/cgroup/cpu.max": {Data: []byte(quota + "\n")},
		}, 64)
		if m.CPUs != want {
			t.Errorf("quota %q: %v processors, want %v", quota, m.CPUs, want)
		}
		if threads := config.AutoThreads(m); want <= 1 && threads != 1 {
			t.Errorf("quota %q: %d threads, want 1", quota, threads)
		}
	}
}

// Both sides leave at the same instant, in each state that has a connection of its own, and on the
// lane. Run with the race detector; the long form is 100,000 rounds, this one 1,200.
func TestCase28BothSidesLeaveAtOnce(t *testing.T) {
	u := startFake(t)
	f := startProxy(t, u.addr)
	f.client()
	goroutines := runtime.NumGoroutine()
	states := [][]string{{"BLPOP", "k", "0"}, {"MULTI"}, {"SUBSCRIBE", "c"}, {"CLIENT", "NO-EVICT", "ON"}, {"WAIT", "1", "0"}, {"NOSUCH"}}
	for round := range 1200 {
		state := states[round%len(states)]
		c := f.client()
		c.sends(redistest.Command(state...))
		r := u.next(state...)
		left := make(chan struct{})
		go func() { // ends at once
			defer close(left)
			reset(c.Conn)
		}()
		if rand.IntN(2) == 0 {
			runtime.Gosched()
		}
		_ = r.conn.Close()
		<-left
	}
	eventually(t, "every session ends", func() bool { return f.Stats().Clients == 1 })
	eventually(t, "every connection is settled", func() bool { return f.Stats().PrivateBusy == 0 })
	eventually(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines+20 })
}

// The server closes what has been idle for its timeout. The proxy replaces the lane before anybody
// asks: commands of clients that were idle as long neither fail nor find no connection, on the lane
// and beside it.
func TestCase42ServerClosesIdleConnections(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--timeout", "3")) // more than a busy machine needs for a round
	f := startProxy(t, s.Addr())
	c, other := f.client(), f.client()
	for round := range 2 {
		c.gets("+OK\r\n", "SET", "k", "v")
		c.gets("*-1\r\n", "BLPOP", "none", "0.01")
		before := connections(s)
		if len(before) < 2 {
			t.Fatalf("round %d: the server lists only %q", round, before)
		}
		eventually(t, "the server has closed them all, and there are others", func() bool {
			now, st := connections(s), f.Stats()
			return !slices.ContainsFunc(now, func(id string) bool { return slices.Contains(before, id) }) && st.Lanes == 2 && st.PrivateIdle >= 2
		})
		other.gets(bulk("v"), "GET", "k")
		c.gets("+OK\r\n", "WATCH", "k")
		c.gets("+OK\r\n", "MULTI")
		c.gets("*0\r\n", "EXEC")
		other.gets("*-1\r\n", "BLPOP", "none", "0.01")
	}
}

// connections lists the server's ids of what the proxy uses for its clients.
func connections(s *redistest.Server) (ids []string) {
	for line := range strings.Lines(s.Do("CLIENT", "LIST")) {
		if strings.Contains(line, ":lane ") || strings.Contains(line, ":private ") {
			id, _, _ := strings.Cut(line, " ")
			ids = append(ids, id)
		}
	}
	return ids
}

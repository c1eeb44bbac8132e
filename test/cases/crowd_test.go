//go:build cases

package cases

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// Idle clients cost memory, and clients that connect, ask and leave cost more. Two thousand that
// have asked once and stay are cheap; two thousand that come and go are served, and leave nothing.
// The long form, 10,000 of each, is run by the benchmarks.
func TestCase34Crowd(t *testing.T) {
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	f.client().gets("+OK\r\n", "SET", "k", "v")
	const crowd, allowed = 2000, 24 << 10
	goroutines, memory := runtime.NumGoroutine(), memoryInUse()
	clients := make([]*redistest.Client, crowd)
	for i := range clients {
		c := connect(t, []string{f.tcp, f.unix}[i%2])
		c.gets(bulk("v"), "GET", "k")
		clients[i] = c.Client
	}
	each := (memoryInUse() - memory) / crowd
	t.Logf("%d bytes and %.2f goroutines for each idle client, this test's own side included", each, float64(runtime.NumGoroutine()-goroutines)/crowd)
	if each > allowed {
		t.Errorf("an idle client costs %d bytes, want at most %d", each, allowed)
	}
	for _, c := range clients {
		_ = c.Close()
	}
	eventually(t, "the crowd is gone", func() bool { return f.Stats().Clients == 1 })
	comeAndGo(t, f, crowd)
	eventually(t, "the visitors are gone", func() bool { return f.Stats().Clients == 1 })
	eventually(t, "their goroutines are gone", func() bool { return runtime.NumGoroutine() <= goroutines+10 })
}

// memoryInUse is heap and stacks after a collection.
func memoryInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// comeAndGo lets n clients connect, ask once and leave, eight at a time.
func comeAndGo(t *testing.T, f *front, n int) {
	t.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range n / 8 {
				if err := visit([]string{f.tcp, f.unix}[i%2]); err != nil {
					t.Errorf("visitor %d of %d: %v", i, worker, err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	t.Logf("%d visits in %v, %.0f a second", n, took, float64(n)/took.Seconds())
	if took > time.Duration(n)*10*time.Millisecond {
		t.Errorf("%d visits took %v", n, took)
	}
}

func visit(addr string) error {
	c, err := redistest.Dial(addr)
	if err != nil {
		return err
	}
	reply, err := c.Do("GET", "k")
	if err == nil && reply != bulk("v") {
		err = fmt.Errorf("got %q", reply)
	}
	reset(c.Conn)
	return err
}

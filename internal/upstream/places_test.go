package upstream

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowdDials sends so many through the gate, each dial of which takes a time, and returns how long all
// took and how many were under way at most.
func crowdDials(t *testing.T, g *Gate, n int, took func(under int) time.Duration) (time.Duration, int) {
	start := time.Now()
	var mu sync.Mutex
	under, most := 0, 0
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if err := g.Enter(t.Context(), ForOne); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			under++
			most = max(most, under)
			d := took(under)
			mu.Unlock()
			time.Sleep(d)
			mu.Lock()
			under--
			mu.Unlock()
			g.Leave(ForOne, Welcome, d)
		})
	}
	wg.Wait()
	return time.Since(start), most
}

// A crowd is let through more at a time while the server takes them quickly, up to a bound, and not
// where it gets slower for it. A server that is away is asked by few.
func TestPlacesGrowForACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, far = 3000, 56 * time.Millisecond
		g := NewGate(16, 48, DefaultBackoff())
		took, most := crowdDials(t, g, clients, func(int) time.Duration { return far })
		if most != 44 || g.Width() != 44 {
			t.Errorf("%d at a time, %d in the end", most, g.Width())
		}
		if want := clients * far / 44; took > want+time.Second/2 {
			t.Errorf("all were through after %v", took)
		}
		if err := g.Enter(t.Context(), ForMany); err != nil {
			t.Fatal(err)
		}
		g.Leave(ForMany, Away, time.Millisecond)
		if g.Width() != 12 {
			t.Errorf("%d at a time of a server that is away", g.Width())
		}
	})
}

func TestPlacesHeedASlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(16, 48, DefaultBackoff())
		_, most := crowdDials(t, g, 1000, func(under int) time.Duration { return time.Duration(under) * time.Millisecond })
		if most > 20 {
			t.Errorf("%d at a time, though each makes the others slower", most)
		}
	})
}

// Whoever goes before gets every second place, and a crowd the others.
func TestPlacesForWhoGoesBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(1, 1)
		if err := p.enter(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		var order []bool
		var wg sync.WaitGroup
		for i := range 8 {
			before := i >= 5
			wg.Go(func() {
				if p.enter(t.Context(), before) == nil {
					order = append(order, before)
					p.leave()
				}
			})
			synctest.Wait()
		}
		p.leave()
		wg.Wait()
		want := []bool{false, true, false, true, false, true, false, false}
		for i := range want {
			if i >= len(order) || order[i] != want[i] {
				t.Fatalf("went before: %v, want %v", order, want)
			}
		}
	})
}

// Who gives up takes no place along, neither waiting nor just served.
func TestPlacesOfWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(1, 1)
		if err := p.enter(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- p.enter(ctx, false) }()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		p.leave()
		if p.taken != 0 || len(p.waiting[1]) != 0 {
			t.Errorf("%d taken, %d wait", p.taken, len(p.waiting[1]))
		}
	})
}

package upstream

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// However many wait for a server that is away, it is asked a few times a second; when it is back,
// all of them are through within the longest pause.
func TestGateSpacesAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters, away = 500, time.Minute
		g := NewGate(16, 16, DefaultBackoff())
		start := time.Now()
		dials := 0
		var last time.Time
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				for {
					if err := g.Enter(t.Context(), ForOne); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					back := time.Since(start) >= away
					if !back {
						dials++
					}
					last = time.Now()
					mu.Unlock()
					if back {
						g.Leave(ForOne, Reached, time.Millisecond)
						return
					}
					g.Leave(ForOne, Away, time.Millisecond)
					time.Sleep(g.Pause(1))
				}
			})
		}
		wg.Wait()
		// A pause is 10 to 500 ms; before the first failure is known the slots are the limit.
		if perSecond := float64(dials-16) / away.Seconds(); perSecond < 2 || perSecond > 6 {
			t.Errorf("%d dials in %v", dials, away)
		}
		if late := last.Sub(start) - away; late > 500*time.Millisecond {
			t.Errorf("the last was through %v after the server was back", late)
		}
	})
}

// The gate bounds dials that are under way, also of a server that accepts and is silent.
func TestGateBoundsDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(3, 3, DefaultBackoff())
		var under, most atomic.Int32
		var wg sync.WaitGroup
		for i := range 50 {
			rank := []Rank{ForMany, ForOne}[i%2]
			wg.Go(func() {
				if g.Enter(t.Context(), rank) != nil {
					return
				}
				if n := under.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(5 * time.Second)
				under.Add(-1)
				g.Leave(rank, Away, time.Millisecond)
			})
		}
		wg.Wait()
		if most.Load() != 3 {
			t.Errorf("%d at a time", most.Load())
		}
	})
}

// What many wait for does not queue behind what a crowd wants for each of its own.
func TestGateKeepsPlacesForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(16, 16, DefaultBackoff())
		crowd, over := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { // ends with the test
				if g.Enter(crowd, ForOne) == nil {
					<-crowd.Done()
					g.Leave(ForOne, Reached, time.Millisecond)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		if err := g.Enter(t.Context(), ForMany); err != nil || time.Since(start) > 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		g.Leave(ForMany, Reached, time.Millisecond)
		over()
		wg.Wait()
	})
}

// Whoever gives up waiting is let go, wherever it waits, and nobody else is held up by it.
func TestGateLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(1, 1, Backoff{Min: time.Hour, Max: time.Hour})
		if err := g.Enter(t.Context(), ForOne); err != nil {
			t.Fatal(err)
		}
		g.Leave(ForOne, Away, time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for range 3 { // one has the turn, the others wait for it
			wg.Go(func() {
				if err := g.Enter(ctx, ForOne); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		wg.Go(func() {
			if err := g.Enter(t.Context(), ForOne); err != nil {
				t.Error(err)
			}
			g.Leave(ForOne, Reached, time.Millisecond)
		})
		wg.Wait()
		if g.Closed() || g.Pause(1) != time.Hour {
			t.Error("closed")
		}
		if err := g.Enter(t.Context(), ForOne); err != nil { // the slot
			t.Fatal(err)
		}
		late, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if err := g.Enter(late, ForOne); err == nil {
			t.Error("more than the limit")
		}
	})
}

func TestGateVerdicts(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want Verdict
	}{
		{nil, Welcome},
		{io.EOF, Away},
		{context.DeadlineExceeded, Away},
		{context.Canceled, Unclear},
		{&noPasswordError{fs.ErrNotExist}, Unclear},
		{&HandshakeError{Step: "AUTH", Reply: []byte("-WRONGPASS no\r\n")}, Reached},
		{&HandshakeError{Step: "PING", Reply: []byte("-ERR max number of clients reached\r\n")}, Away},
	} {
		if got := verdict(tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}

// What does not come to the server closes the gate to nobody: a dial without a password, and one
// whose time is over before the server can have answered. One that had time does.
func TestGateStaysOpen(t *testing.T) {
	for _, tt := range []struct {
		name   string
		user   User
		time   time.Duration
		closed bool
	}{
		{"the user has left", User{Name: "alice", Proof: "p"}, time.Minute, false},
		{"no time left", User{}, fairTime / 2, false},
		{"a silent server", User{}, 2 * fairTime, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				silent, _ := net.Pipe()
				d := &Dialer{
					Gate:        NewGate(16, 16, DefaultBackoff()),
					PasswordOf:  func(User) (string, error) { return "", errors.New("nobody has proven it") },
					DialContext: func(context.Context, string, string) (net.Conn, error) { return silent, nil },
				}
				ctx, cancel := context.WithTimeout(t.Context(), tt.time)
				defer cancel()
				if _, _, err := d.DialFor(ctx, ForOne, Key{User: tt.user}, "private"); err == nil {
					t.Fatal("dialled")
				}
				if d.Gate.Closed() != tt.closed {
					t.Errorf("closed: %v", !tt.closed)
				}
			})
		})
	}
}

package proxy

import (
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// Whatever a client waits for when it resets its connection, its session ends at once, and gives
// its place among the clients back.
func TestResetEndsWaiting(t *testing.T) {
	for _, words := range [][]string{
		{"GET", "k"}, {"SELECT", "3"}, {"HELLO", "3"}, {"CLIENT", "UNBLOCK", "1"},
		{"BLPOP", "k", "0"}, {"WATCH", "k"}, {"SUBSCRIBE", "c"},
	} {
		t.Run(words[0], func(t *testing.T) {
			f := startFake(t)
			p := startProxy(t, f, func(c *Config) { c.UpstreamWait = time.Hour })
			until(t, "the upstream", func() bool { st := p.Stats(); return st.UpstreamUp && st.Control > 0 })
			f.leave(t, p)
			p.resetWaiting(t, words)
		})
	}
	t.Run("AUTH", func(t *testing.T) {
		f := startFake(t)
		p := startProxy(t, f, func(c *Config) { c.UpstreamWait = time.Hour })
		for range maxProvers {
			if _, err := p.identities.provers.turns.take(t.Context(), rankKnown); err != nil {
				t.Fatal(err)
			}
		}
		p.resetWaiting(t, []string{"AUTH", "user", "password"})
	})
}

// resetWaiting has a client send a command that has to wait, and reset its connection.
func (p *testProxy) resetWaiting(t *testing.T, words []string) {
	t.Helper()
	c := p.client()
	if err := c.Send(redistest.Command(words...)); err != nil {
		t.Fatal(err)
	}
	s := p.sessionOf(t, c)
	until(t, "the session to wait", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.resign != nil })
	reset(c)
	until(t, "the session to end", func() bool { return p.Stats().Clients == 0 })
}

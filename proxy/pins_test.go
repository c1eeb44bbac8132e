package proxy

import (
	"testing"
	"testing/synctest"
	"time"
)

// Who is pinned and resets in turn does so some times as it likes, and then at a pace; the first time
// never waits.
func TestPinsBehindResetsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing(&Proxy{})
		start := time.Now()
		for range 10 * pinBurst {
			s.pacePin()
		}
		s.unpinned()
		for range pinBurst {
			s.pacePin()
			s.unpinned()
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("the first wait %v", d)
		}
		const more = 10
		for range more {
			s.pacePin()
			s.unpinned()
		}
		if d, want := time.Since(start), time.Second*more/pinsPerSecond; d.Round(time.Millisecond) != want {
			t.Errorf("%d more take %v, want %v", more, d, want)
		}
	})
}

// It is RESET behind what pins a client that counts, and each that pins it.
func TestResetsCountAsPins(t *testing.T) {
	f := startFake(t)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		switch args[0] {
		case "MONITOR":
			return "+OK\r\n", true
		case "RESET":
			return "+RESET\r\n", true
		case "QUIT":
			c.Write([]byte("+OK\r\n"))
			c.Close()
			return "", true
		}
		return "", false
	})
	p := startProxy(t, f, nil)
	c := p.client()
	for range 4 {
		expect(t, c, "+OK\r\n", "MONITOR")
		expect(t, c, "+RESET\r\n", "RESET")
		expect(t, c, "+RESET\r\n", "RESET")
	}
	s := p.sessions.all()[0]
	if n := pinBurst - int(s.pins.Tokens()+0.5); n > 3 || n < 2 {
		t.Errorf("%d of four count", n)
	}
}

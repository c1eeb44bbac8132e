package proxy

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A client moves to some new places as it likes, and to further ones at a pace.
func TestMovesArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failing(&Proxy{identities: newIdentities()})
		const more = 25
		start := time.Now()
		for range moveBurst {
			s.paceMove()
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("the first wait %v", d)
		}
		for range more {
			s.paceMove()
		}
		if d, want := time.Since(start), time.Second*more/movesPerSecond; d.Round(time.Millisecond) != want {
			t.Errorf("%d more take %v, want %v", more, d, want)
		}
	})
}

// Only places count that nobody has been to lately: between two of them a client moves freely.
func TestMovesToAndFroAreFree(t *testing.T) {
	a := startAsked(t)
	p := startProxy(t, a.fakeServer, nil)
	c := p.client()
	for n := range 2 * moveBurst {
		expect(t, c, "+OK\r\n", "AUTH", fmt.Sprintf("user%d", n%2), "right")
		expect(t, c, bulkReply("k"), "GET", "k")
	}
	s := p.sessions.all()[0]
	if n := int(s.moves.Tokens()); n < moveBurst-3 {
		t.Errorf("%d of %d moves are left after two new places", n, moveBurst)
	}
}

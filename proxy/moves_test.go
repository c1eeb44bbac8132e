package proxy

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"streamproxy/internal/upstream"
)

// A client moves to some new places as it likes, and to further ones at a pace; another user is more
// of a move than another database.
func TestMovesArePaced(t *testing.T) {
	other := upstream.Key{User: upstream.User{Name: "other"}}
	for _, tt := range []struct {
		name string
		to   upstream.Key
		cost int
	}{
		{"databases", upstream.Key{DB: 3}, 1},
		{"users", other, userMoves},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := failing(&Proxy{identities: newIdentities()})
				const more = 24
				start := time.Now()
				for range moveBurst / tt.cost {
					s.paceMove(tt.to)
				}
				if d := time.Since(start); d != 0 {
					t.Errorf("the first wait %v", d)
				}
				for range more / tt.cost {
					s.paceMove(tt.to)
				}
				if d, want := time.Since(start), time.Second*more/movesPerSecond; d.Round(time.Millisecond) != want {
					t.Errorf("%d more take %v, want %v", more/tt.cost, d, want)
				}
			})
		})
	}
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
	if n := int(s.moves.Tokens()); n < moveBurst-2*userMoves-1 {
		t.Errorf("%d of %d moves are left after two new places", n, moveBurst)
	}
}

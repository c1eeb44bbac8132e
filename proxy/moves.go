package proxy

import (
	"time"

	"golang.org/x/time/rate"

	"streamproxy/internal/upstream"
)

// Who a client is, which database it uses and which protocol it speaks, it can change with every
// command. Where nobody is yet that takes the server a new connection, for which the proxy has few
// dials at a time; one that is dialled for a client that is somebody else again at once is dialled for
// nothing. So a client moves to such a place a number of times as it likes, and then at a pace at
// which it is in the way of nobody who is new. Where somebody is, or has been a moment ago, it moves
// freely.

const (
	// movesPerSecond and moveBurst bound how often one session has a place dialled to which it moves. A
	// burst is as many as a server has databases unless told otherwise: some clients look at each.
	movesPerSecond = 10
	moveBurst      = 16
	// userMoves is how many a move to another user counts for: what is to be asked about it comes on top,
	// and there is no end of them.
	userMoves = 2
)

// paceMove counts a move for which a connection has to be dialled, and waits until it is time for
// it. Only this session waits.
func (s *session) paceMove(to upstream.Key) {
	n := 1
	if to.User != s.key.User {
		n = userMoves
	}
	if s.moves == nil {
		s.moves = rate.NewLimiter(movesPerSecond, moveBurst)
	}
	if d := s.moves.ReserveN(time.Now(), n).Delay(); d > 0 {
		s.pause(d)
	}
}

package proxy

import (
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"streamproxy/internal/resp"
)

// Replies share a connection as long as they are small. Of one giant reply the lane's
// reader sees when it comes; of a pipeline whose replies are large together nobody can:
// its commands stand on the lane before the first of them is answered, and whoever comes
// behind them waits for all. So a pipeline that is likely to be answered with much gets
// a private connection, as a large request does. What is likely is judged by the replies
// that the session got before, and for a session that is new by what the others get. New
// ones may be misjudged together, so only so many of their commands are under way before
// the first replies are there; the others wait for those, as they would on the lane.

const (
	// heavyPipeline is the size from which the replies expected by one session are not
	// left to share a connection: that of a giant reply.
	heavyPipeline = 1 << 20
	// weightWindow is over how many replies a session's mean runs.
	weightWindow = 16
	// typicalPiece is after how many bytes of replies a session tells its hub about
	// them, and typicalWindow over how many bytes the hub's mean runs.
	typicalPiece  = 64 << 10
	typicalWindow = 1 << 20
	// maxNovices is how many commands in pipelines of sessions without a past a key's
	// lanes carry at a time: so many replies of 100 KB are 100 of a server's turns, see place.
	maxNovices = 64
	// largeReply is the size from which a command with its reply takes places, one for each
	// place bytes, so that a key's lanes carry 4 MiB of such at a time. A server that is busy with
	// many clients writes so much to each before it turns to the next (Redis's
	// NET_MAX_WRITES_PER_EVENT).
	largeReply = 64 << 10
	place      = 64 << 10
	// portion is how many bytes of replies a session asks for at a time. A server makes all
	// replies to what it has read of a client before it turns to the next, also for one that
	// has left since; a pipeline that asks for more is sent in portions, each when the one before
	// has been answered. While the client takes what it gets they grow, each to twice the one
	// before and maxTrust times at most: over a far link each costs a round trip.
	portion  = maxNovices * place
	maxTrust = 2
	// laneTurn is how many bytes of commands one session may have unanswered on a lane, but
	// for a single command: as many as a server reads of one client before it turns to the
	// next (Redis's PROTO_IOBUF_LEN). So a neighbour on the lane waits for no more of each
	// pipeline than beside it at the server, however long the server takes for a command.
	laneTurn = 16 << 10
)

// wideCommand is from how many arguments on a command does not share a connection: at 0.1
// to 0.3 us for each of them, of which many make few bytes, the server is busy with it for as
// long as with hundreds of others.
const wideCommand = 1024

func isWide(cmd resp.Command) bool { return cmd.Len() > wideCommand }

// weight is what a session has learned about its replies to shared commands. It is
// written with the session's mu held.
type weight struct {
	past    atomic.Bool  // a reply has come
	mean    atomic.Int64 // bytes in a reply, a running mean
	bytes   int64        // of the reply under way
	untold  int64        // bytes, and
	replies int64        // replies, of which the hub has not heard
	booked  int64        // places taken of the hub's
}

// typical is the size of the reply that a byte belongs to, on average, among a hub's
// replies of late: a few large ones count more than many small ones. Of updates that meet
// one may be lost.
type typical struct{ size atomic.Int64 }

// learn takes in so many bytes of replies of a mean size.
func (t *typical) learn(mean, bytes int64) {
	old := t.size.Load()
	t.size.Store(old + (mean-old)*min(bytes, typicalWindow)/typicalWindow)
}

// weigh books n bytes of the session's replies to shared commands, of which done end with
// them. The lock is held.
func (s *session) weigh(n, done int) {
	w := &s.weight
	w.bytes += int64(n)
	if done == 0 {
		return
	}
	size, of := w.bytes, int64(done)
	w.bytes = 0
	w.untold += size
	w.replies += of
	if done > 1 {
		size /= of
	}
	old := w.mean.Load()
	if !w.past.Load() { // it begins with what was expected of it
		old = s.home.Load().typical.size.Load()
		w.past.Store(true)
	}
	if now := old + (size-old)*min(of, weightWindow)/weightWindow; now != w.mean.Load() { // storing is dear
		w.mean.Store(now)
	}
	if w.untold >= typicalPiece {
		s.home.Load().typical.learn(w.untold/w.replies, w.untold)
		w.untold, w.replies = 0, 0
	}
}

// heavy reports whether n more commands, of size bytes, are more than should share a
// connection, with what the session has outstanding: by their own size, or by that of the
// replies they are likely to bring. If they are not, and large replies are likely or the session
// has no past, they have their places.
func (s *session) heavy(n, size int) bool {
	if s.overTurn(n, size) || s.likely(n) {
		return true
	}
	past, mean := s.expects()
	load := mean*int64(n) + int64(size)
	if load < largeReply && (past || n == 1) {
		return false
	}
	if !past && n > maxNovices {
		return true
	}
	places := min(max(int64(n), load/place), maxNovices)
	if past {
		return !s.book(places, false)
	}
	s.book(places, true)
	if !s.likely(n) { // others have learned while it waited
		return false
	}
	s.withdraw()
	return true
}

// overTurn reports whether size bytes more of n commands are more than one session's turn.
func (s *session) overTurn(n, size int) bool {
	asked := s.asked.Load()
	return asked+int64(size) > laneTurn && (n > 1 || asked > 0)
}

// expects is the mean size of the replies that the session is likely to get, and whether that is
// known from its own.
func (s *session) expects() (past bool, mean int64) {
	if s.weight.past.Load() {
		return true, s.weight.mean.Load()
	}
	return false, s.hub.typical.size.Load()
}

func (s *session) likely(n int) bool {
	_, mean := s.expects()
	if mean*int64(n+maxOutstanding) < heavyPipeline {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return mean*int64(n+s.outstanding) >= heavyPipeline
}

// portionNow is how many commands the session asks for at a time: so many that the replies
// expected are no more than a portion.
func (s *session) portionNow() int {
	_, mean := s.expects()
	if mean*maxOutstanding < portion {
		return maxOutstanding
	}
	return int(max((portion<<s.trust)/mean, 1))
}

// nextPortion follows a portion that has been sent, which was when the one before it had been
// answered. It is larger if that has been taken by the client.
func (s *session) nextPortion() {
	s.mu.Lock()
	owes := s.unsent() > 0
	s.mu.Unlock()
	if s.trust++; owes {
		s.trust = 0
	}
	s.trust = min(s.trust, maxTrust)
	s.portion = s.portionNow() // replies may have come meanwhile
}

// newNovices returns a hub's places.
func newNovices() *semaphore.Weighted { return semaphore.NewWeighted(maxNovices) }

// book takes places, and reports whether it has them. If told to it waits for them, but not for
// ever: a lane that does not move is not made to by waiting.
func (s *session) book(places int64, wait bool) bool {
	if !s.hub.novices.TryAcquire(places) {
		if !wait {
			return false
		}
		s.flushLocal()
		ctx, cancel := s.patience()
		defer cancel()
		if s.hub.novices.Acquire(ctx, places) != nil {
			return false
		}
	}
	s.mu.Lock()
	s.weight.booked += places
	s.mu.Unlock()
	return true
}

// unbook gives places back: replies have come, or none will. The lock is held.
func (s *session) unbook(places int64) {
	if places > 0 {
		s.weight.booked -= places
		s.home.Load().novices.Release(places)
	}
}

// retract is withdraw for who has had its turn among the strangers, with n commands.
func (s *session) retract(n int) {
	s.mu.Lock()
	s.returnPlace(n)
	s.mu.Unlock()
	s.withdraw()
}

// withdraw is unbook for who has not sent anything after all.
func (s *session) withdraw() {
	s.mu.Lock()
	s.unbook(s.weight.booked)
	s.mu.Unlock()
}

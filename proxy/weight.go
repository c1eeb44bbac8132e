package proxy

import "sync/atomic"

// Replies share a connection as long as they are small. Of one giant reply the lane's
// reader sees when it comes; of a pipeline whose replies are large together nobody can:
// its commands stand on the lane before the first of them is answered, and whoever comes
// behind them waits for all. So a pipeline that is likely to be answered with much gets
// a private connection, as a large request does. What is likely is judged by the replies
// that the session got before, and for a session that is new by what the others get. New
// ones may be wrong together, so no more than some of their commands share a connection
// before the first replies are there.

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
	// maxNovices is how many commands of sessions without a past a key's lanes may carry
	// before pipelines of more such sessions go elsewhere: as many replies of just below a
	// giant's size are a second of a server's work.
	maxNovices = 1024
)

// weight is what a session has learned about its replies to shared commands. The mean is
// written with the session's mu held.
type weight struct {
	mean    atomic.Int64 // bytes in a reply, a running mean
	bytes   int64        // of the reply under way
	told    bool         // mean has begun, with what was typical then
	past    atomic.Bool  // a reply has come
	booked  int64        // commands booked as a novice's
	untold  int64        // bytes, and
	replies int64        // replies, of which the hub has not heard
}

// begin gives a session without a past the mean of the others.
func (w *weight) begin(typical int64) {
	if !w.told {
		w.told = true
		w.mean.Store(typical)
	}
}

// note books bytes of replies, of which done end with them. It returns the mean size of
// the latest replies, each weighted by its bytes, when there is enough of them to be told
// to the hub, else 0 bytes.
func (w *weight) note(n, done int) (mean, bytes int64) {
	w.bytes += int64(n)
	if done == 0 {
		return 0, 0
	}
	size, of := w.bytes, int64(done)
	w.bytes = 0
	w.untold += size
	w.replies += of
	if done > 1 {
		size /= of
	}
	old := w.mean.Load()
	if now := old + (size-old)*min(of, weightWindow)/weightWindow; now != old {
		w.mean.Store(now)
	}
	if w.untold < typicalPiece {
		return 0, 0
	}
	mean, bytes = w.untold/w.replies, w.untold
	w.untold, w.replies = 0, 0
	return mean, bytes
}

// typical is the size of the reply that a byte belongs to, on average, in a hub's
// replies of late: a few large ones count more than many small ones. Updates that meet
// may lose one of them.
type typical struct{ size atomic.Int64 }

// learn takes in so many bytes of replies of a mean size.
func (t *typical) learn(mean, bytes int64) {
	old := t.size.Load()
	t.size.Store(old + (mean-old)*min(bytes, typicalWindow)/typicalWindow)
}

// weigh books bytes of the session's replies to shared commands. The lock is held.
func (s *session) weigh(n, done int) {
	if done > 0 && !s.weight.past.Load() {
		s.weight.past.Store(true)
	}
	if mean, bytes := s.weight.note(n, done); bytes > 0 {
		s.home.Load().typical.learn(mean, bytes)
	}
}

// book counts n commands of a session without a past among the novices. The lock is held.
func (s *session) book(n int) {
	if !s.weight.past.Load() {
		s.hub.novices.Add(int64(n))
		s.weight.booked += int64(n)
	}
}

// unbook ends that, when the first reply has come or none will. The lock is held.
func (s *session) unbook() {
	if s.weight.booked > 0 {
		s.home.Load().novices.Add(-s.weight.booked)
		s.weight.booked = 0
	}
}

// heavy reports whether n more commands are likely to bring the session, with what it
// has outstanding, more than should share a connection.
func (s *session) heavy(n int) bool {
	s.weight.begin(s.hub.typical.size.Load())
	if n > 1 && !s.weight.past.Load() && s.hub.novices.Load() > maxNovices-int64(n) {
		return true
	}
	mean := s.weight.mean.Load()
	if mean*int64(n+maxOutstanding) < heavyPipeline {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return mean*int64(n+s.outstanding) >= heavyPipeline
}

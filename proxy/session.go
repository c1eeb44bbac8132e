package proxy

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
	"streamproxy/reclaim"
)

// session is one client connection. Its reader (serve) is its brain: it alone
// classifies, routes and changes the session's state. Upstream readers bring
// replies and tell it through mu what it has to know.
type session struct {
	p       *Proxy
	id      int64 // virtual, see ids.go
	nc      net.Conn
	rc      syscall.RawConn // nil where the connection has no descriptor (TLS, pipes)
	below   syscall.RawConn // under TLS, that of the socket below
	wire    *wire           // under TLS, the socket as it is metered; nil: it is not
	created time.Time

	// Of the reader.
	scan    resp.CommandScanner
	partial bool    // scan is within a command
	portion int     // how many commands the next stretch may have, see portionNow
	trust   int     // how many times that has been doubled
	in      *buffer // bytes read and not yet executed; nil: none
	ahead   queue   // those behind in, read while a command blocks, see ahead.go
	lined   bool    // it stands in the line of those that would read on
	readErr error
	readEOF bool
	ending  bool // no further command is executed
	authed  bool
	key     upstream.Key
	hub     *hub
	home    atomic.Pointer[hub] // the same, for others to read
	conn    *batcher.Conn       // where shared commands go: the lane's, or own; nil: none yet
	line    []byte              // an inline command, re-encoded
	spans   []resp.Span
	body    *body         // a large command under way, see large.go
	pinned  *batcher.Conn // its own until it leaves, see pin.go
	own     *batcher.Conn // carries a transaction; s.conn is the same, see transaction.go
	// collecting is own, or was, if commands are collected there that have not been sent, see pass.
	collecting *batcher.Conn
	tx         tx
	// Of a pinned session: it has sent what is no command, and how much of the large command
	// under way has been passed on.
	unframed bool
	pinSize  int
	withheld bool            // what is left of that command is not passed on, see sift.go
	meddling bool            // some of what is about to be passed on concerns reclaim, see unseen.go
	skipping bool            // the last command was CLIENT REPLY SKIP
	wrote    *batcher.Conn   // carried the session's last write, see wait.go
	earlier  []*batcher.Conn // of which one did, if what followed has written nothing
	// firstWrote carried what the session wrote as a newcomer; laterWrites counts what it sent after
	// that on other lanes, see noteWrite.
	firstWrote  *batcher.Conn
	laterWrites int
	counts      [numClasses]int
	local       int       // commands answered here since the last flush
	wasBusy     bool      // busy has been set since it was last seen cleared
	parting     dismissed // what the reader has seen of dismissal

	failures *rate.Limiter // of credentials, see failures.go; nil: there was none yet
	moves    *rate.Limiter // to where nobody is, see moves.go; nil: there was none yet
	pins     *rate.Limiter // again after a RESET, see pins.go; nil: there was none yet

	regular  bool   // it has had a private connection, see waiters.go
	silent   bool   // the server may leave its own connection's commands unanswered, see unheard.go
	reason   []byte // what is said of the command that failed last, if not the usual
	newcomer bool   // it has joined the lane of those who had no reply yet

	spoken atomic.Bool        // the client has been sent something
	left   atomic.Bool        // the client has ended the connection; its last bytes may be unread
	resign context.CancelFunc // ends the reader's wait for a connection, see patience; guarded by mu

	// Set by the reader, read by PROXY CLIENTS.
	name    atomic.Pointer[string]
	lastCmd atomic.Int64 // unix nanoseconds
	// lastWork is lastCmd without commands that may block; 0: none yet.
	lastWork atomic.Int64
	db       atomic.Int64
	private  atomic.Int64 // the server's id of the connection it has to itself

	stream *reclaim.Session // nil until a stream command was seen

	seat batcher.Seat // the session's place on its lane
	lane segment      // the segment that the common case reuses

	weight  weight  // of its replies
	entered entered // guarded by mu

	// working: the reader executes what it has read; it may wait for an upstream with a
	// command that is nowhere else booked.
	working atomic.Bool

	// parked: the reader waits for its client, and has executed all that it has read.
	parked atomic.Bool

	// poisoned: a command has failed, the rest of its pipeline must not run. Set with
	// mu held, so that no command slips in behind the failed one.
	poisoned atomic.Bool

	mu           sync.Mutex
	cond         sync.Cond
	head, tail   *segment
	outstanding  int          // commands upstream, unanswered
	asked        atomic.Int64 // about how many bytes those of them measure that went to a lane; read without mu
	out          queue
	writing      bool  // a goroutine writes to the client
	inWrite      int   // bytes it has not written yet
	writeRoom    int   // bytes of memory for them
	unheard      bool  // a command on its own connection waits for its reply, see unheard.go
	insists      bool  // its client takes nothing before it has been read from, see insist.go
	behind       int   // bytes of answers that wait for earlier ones
	charged      int64 // what the proxy counts of all this
	ceded        int64 // and of that as good as given back
	dropping     int64 // of that, what its reader is about to drop
	holds        int64 // bytes of memory for what the reader has not executed yet
	awaits       int64 // bytes of memory for a command that may block for ever
	sealed       int64 // bytes of memory that TLS may take, see wire.go
	progress     uint64
	waiters      int  // goroutines in cond.Wait
	closed       bool // no byte is written any more
	departed     bool // the client ended its sending direction under a command that was blocked
	busy         bool // a command on a private connection is under way
	suspended    bool // the reader holds commands that wait for busy to end
	active       *exclusive
	alarm        *time.Timer   // wakes the reader to look again whether it reads on, see ahead.go
	urging       *time.Timer   // looks after what a client left under way, see hurry
	urged        *exclusive    // what that was
	settled      bool          // nothing is under way any more, and nothing will be
	since        time.Time     // when it, or a RESET, was sent, if that may last
	wroteOn      *batcher.Conn // carried a write of a private command; the reader takes note
	perhaps      bool          // it was a script's, which may not have written
	resetting    bool          // a pinned session has sent RESET
	wasReset     bool          // and it has been answered
	resetSkipped bool          // or would have been, had the client not asked for silence
	standIns     int           // sent on its pinned connection and not seen refused yet
	lastWord     []byte        // for the client when its pinned connection has ended
	nonsense     bool          // what that end is to be brought about with, see breakOff
	appended     uint64        // bytes of output so far
	began        time.Time     // when the first of the outstanding commands was submitted
	trip         time.Duration // what upstream took of it, if that was measured
	taken        uint64        // of them, those the client's socket took
	handouts     []handout     // not yet on their way
	gone         bool          // the pinned connection has ended, or the session is dismissed
	torn         bool          // the server has refused to end a transaction
	dismissal    dismissed     // what the drain wants

	// Of whoever writes.
	wbuf []byte
	wn   int
	werr error
	wfn  func(fd uintptr) bool
}

func newSession(p *Proxy, nc net.Conn) *session {
	s := &session{p: p, nc: nc, created: time.Now(), authed: p.admits()}
	s.cond.L = &s.mu
	s.wfn = s.writeReady
	s.lane.s, s.lane.shared = s, true
	if sc, ok := nc.(syscall.Conn); ok {
		s.rc, _ = sc.SyscallConn()
	} else if sc, ok := socket(nc).(syscall.Conn); ok {
		s.below, _ = sc.SyscallConn()
	}
	s.meter()
	s.key = p.defaultKey()
	s.hub = p.hubOf(s.key)
	s.home.Store(s.hub)
	s.db.Store(int64(s.key.DB))
	s.lastCmd.Store(s.created.UnixNano())
	s.scan.Init(s.limits())
	return s
}

func (s *session) limits() resp.Limits {
	if !s.authed {
		return resp.PreAuthLimits()
	}
	return resp.Limits{MaxBulk: s.p.maxBulk.Load(), MaxArgs: s.p.cfg.MaxArgs, MaxInline: 64 << 10}
}

func (s *session) remote() string {
	if a := s.nc.RemoteAddr(); a != nil && a.String() != "" {
		return a.String()
	}
	return "unix"
}

// serve reads the client to its end.
func (s *session) serve() {
	if s.secured() {
		s.intake()
	}
	s.end()
}

// end settles the session after its reader has stopped reading.
func (s *session) end() {
	s.sleepOn()
	if s.readErr == nil { // an orderly end: everything asked is answered first
		s.dropBody(s.readEOF) // but the rest of a body will not come
		s.finishPinned()
		s.finishReplies()
	}
	s.leave()
	s.abort()
	s.ahead.drop()
	s.scan.Reset()
	s.keep(nil) // others wait for the room
	s.p.lobby.leave(s)
	s.stepAside()
	_ = s.nc.Close() // nothing can be done about a connection that does not close
	s.dropOwn()
	if s.stream != nil {
		s.stream.Leave() // nothing is claimed for a client that is not here
	}
	s.waitIdle()
	s.dropHandouts()
	s.dropLane()
	s.mu.Lock()
	s.out.drop()
	s.mu.Unlock()
	s.setName("")
	s.mu.Lock()
	s.unhurry()
	s.sealed = 0
	s.charge()
	s.mu.Unlock()
	s.p.leaveHub(s.hub)
	s.p.identities.exit(s.key.User)
	s.p.forget(s)
}

// finishReplies waits until everything asked has been answered and taken, as far
// as the client takes it, and then ends the sending direction first, so that a
// reset cannot eat a reply.
func (s *session) finishReplies() {
	s.flush()
	last := s.lastBlocking()
	s.mu.Lock()
	s.waitProgress(func() bool { return s.outstanding == 0 || s.abandoned() }, 0)
	settled := s.outstanding == 0 && s.active == nil
	s.mu.Unlock()
	if settled {
		s.dropOwn() // its place among the transactions does not wait for this client
	}
	s.flush()
	s.mu.Lock()
	s.waitProgress(func() bool { return s.unsent() == 0 }, s.p.cfg.ClientStallTimeout)
	s.mu.Unlock()
	s.seeTaken(last)
	s.linger()
}

// abandoned reports whether the command under way may block, its client has ended the
// connection, and it cannot be called back: nobody waits for that reply. The lock is held.
func (s *session) abandoned() bool { return s.active != nil && s.active.forsaken }

// lingerTime bounds how long the end of a connection waits for its client.
const lingerTime = time.Second

// linger says goodbye in TCP's terms: no more bytes will come; what the client
// still sends is read and dropped for a moment.
func (s *session) linger() {
	h, ok := s.nc.(interface{ CloseWrite() error })
	if !ok || h.CloseWrite() != nil {
		return
	}
	if s.readEOF {
		return
	}
	if s.nc.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	chunk := s.p.takeChunk()
	defer s.p.putChunk(chunk)
	for {
		if _, err := s.nc.Read(chunk.b); err != nil {
			return
		}
		s.opened()
	}
}

// abort ends the client's connection now. Replies still to come are dropped; their
// commands keep their places upstream. The descriptor is given up by the reader,
// which this wakes; abort may be called from within that very reader. It reports whether it
// was the first to do so.
func (s *session) abort() (first bool) {
	s.mu.Lock()
	first = s.seal()
	s.mu.Unlock()
	if first {
		s.shutdown()
	}
	return first
}

// seal lets no byte leave any more, and reports whether it is the first to do so:
// then the caller shuts the connection down after unlocking. The lock is held.
func (s *session) seal() (first bool) {
	first = !s.closed
	s.closed = true
	s.out.drop() // now: until all that it asked for has been answered may take long
	for g := s.head; g != nil; g = g.next {
		g.parked = nil
	}
	s.behind = 0
	s.charge()
	s.cond.Broadcast()
	if s.resign != nil {
		s.resign()
	}
	return first
}

// shutdown ends both directions without giving up the descriptor.
func (s *session) shutdown() {
	defer func() { _ = s.nc.SetReadDeadline(past) }() // see batcher: a reset gives no event
	h, ok := socket(s.nc).(interface {
		CloseRead() error
		CloseWrite() error
	})
	if !ok {
		_ = s.nc.Close()
		return
	}
	// Errors say that it is shut down already.
	_ = h.CloseRead()
	_ = h.CloseWrite()
}

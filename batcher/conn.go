package batcher

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"streamproxy/internal/resp"
)

// The invariants of a Conn:
//
//  1. The FIFO lists owners in the order in which their bytes stand in the queue,
//     because both are appended under one hold of the lock. Replies arrive in that
//     order, so ownership is a matter of counting.
//  2. A reply is matched only with a command whose batch has been handed to the
//     socket (c.written). A reply beyond that is a protocol violation and kills the
//     connection: there is never a guess.
//  3. One goroutine at a time writes: the one that set state to flushWriting, or
//     drain, to which it passes that state on.
//  4. After death nothing is written any more, and every command that was taken is
//     failed exactly once, by the reader, after the last write call has returned:
//     only then is it known how much the socket accepted.
//
// Rejected: a standing writer goroutine that owns the socket (yamux's shape). It
// costs a hand-over, about two thread wake-ups, on every command of a lone caller;
// measured, the goroutine that read the command and writes it itself is a third
// cheaper at one caller and no worse at fifty.

const (
	// giantReply is the size from which a reply is not left to share a connection.
	giantReply = 1 << 20
	// giantRun is how many bytes of replies one owner is likely to have still to come
	// before the connection is left to it.
	giantRun = 4 << 20
	// giantBuffered is how much of a giant reply is held for a slow client while
	// replies of others wait behind it.
	giantBuffered = 32 << 20
	// giantStall is how long such a client may take nothing.
	giantStall = 100 * time.Millisecond
	// giantLeastStall is what is left of that for the later ones, when clients before
	// have used it up.
	giantLeastStall = 20 * time.Millisecond
	// maxQueued is how many bytes may wait for a socket that does not take them
	// before their owners have to wait.
	maxQueued = 1 << 20
	// collected is how many bytes of commands may stay in the queue because more are to come
	// at once.
	collected = 16 << 10
)

type status uint8

const (
	live status = iota
	retired
	dead
)

type flushState uint8

const (
	flushIdle    flushState = iota // nobody has undertaken to write
	flushWaiting                   // the timer has
	flushWriting                   // a goroutine has
)

// Options shapes a Conn. The zero value is a private connection without observer.
type Options struct {
	// Kind is the connection's role for Events: "lane", "private", "control".
	Kind string
	// Shared makes it a lane's: batches are coalesced by Policy, the first writer
	// yields once, and a giant reply retires the connection.
	Shared bool
	// Policy is the flush policy of a shared connection.
	Policy PolicyConfig
	// RoundTrip seeds the policy, for example with the time of the handshake.
	RoundTrip time.Duration
	// Timeout is the silence after which Overdue reports the connection; 0 never.
	Timeout time.Duration
	// Events observes.
	Events *Events
	// Closed is called once, when every command has been answered or failed.
	Closed func(*Conn)
	// Emptied is called when a retired connection has answered all it owed.
	Emptied func(*Conn)
	// Pushed gets every RESP3 push frame that arrives outside raw mode; nil drops
	// and counts them.
	Pushed func(frame []byte)
	// ID is the server's own id of the connection, 0 where it is not known.
	ID int64
	// Name is the name under which the server lists the connection, empty where it has
	// none that tells it from others.
	Name string
	// Opaque says that a write which failed tells nothing about how much of it was
	// sent, as under TLS: every command in it may have been executed.
	Opaque bool
}

// Conn is one upstream connection. Its methods may be called by any goroutine.
type Conn struct {
	opts Options
	nc   net.Conn
	rc   syscall.RawConn // nil where the connection has no descriptor (TLS, pipes)

	mu        sync.Mutex
	cond      sync.Cond // a write ended, room in the queue, death
	status    status
	state     flushState
	reason    FlushReason // why the batch under way leaves
	fifo      runs
	out       []byte // queued, not yet handed to a write
	spare     []byte
	queued    int   // commands in out
	first     int64 // when the first byte of out was queued
	due       int64 // flushWaiting: when it leaves at the latest
	written   int   // commands handed to a write, not yet taken from the FIFO by the reader
	inflight  int   // commands handed to a write and unanswered, as of the last chunk
	writeFrom int64 // when a round-trip sample started, 0: none under way
	lost      int   // commands of a failed write whose last byte was not accepted
	cause     error
	policy    *Policy
	activity  Activity
	delayed   bool // policy.Delay() > 0: only then are clocks and activity kept
	timer     *waiter
	let       bool // retired, empty, and Options.Emptied has been or is being called
	bodyOpen  bool // a streamed command is not complete yet
	patient   bool // the silence of a blocking command is legal
	raw       Sink // not nil: bytes pass untouched
	owner     Sink // is told of the end
	kind      string
	epoch     uint64                 // counts changes of role
	seats     atomic.Int32           // sessions that may send at any moment, in this role
	shared    atomic.Bool            // coalesce, and let giant replies retire it
	aims      atomic.Int32           // see Aim
	found     atomic.Pointer[string] // see Found
	unshared  atomic.Int64           // nanotime of when it was turned into a private one; 0: never
	opened    int64                  // when

	busySince atomic.Int64 // when the silence began that the watchdog measures; 0: nothing owed
	lastRead  atomic.Int64 // when the last bytes came
	pacing    atomic.Bool  // the reader waits for a client: the silence is ours

	writeSince atomic.Int64 // when the piece of a body under way was begun, 0: none is
	looked     atomic.Int64 // the lastRead for which the end has been looked for

	// Of the writer.
	wbuf []byte
	wn   int
	werr error
	wfn  func(fd uintptr) bool
	// Of who leads a batch: whether he has yielded for it, and what is known of that.
	yielded bool
	yields  yields
	alone   int // commands in the batch when its leader was chosen; mu guards it

	// Of the reader.
	cur     run
	got     int64 // bytes of cur's replies so far
	had     int64 // of those replies, how many have ended
	answers int   // replies completed since the lock was last held
	scan    resp.ReplyScanner
	within  bool // the last byte that came was not the last of a frame
	owing   bool // something was unanswered at the end of the last chunk
	touched []Sink
	stalled time.Duration // spent waiting for clients that took nothing
	trip    time.Duration // of the round trip that ended with this chunk; 0: none did
	readErr error
	inPush  bool
	pushed  []byte

	done chan struct{}
}

// NewConn takes over a greeted connection and starts its reader.
func NewConn(nc net.Conn, opts Options) *Conn {
	if opts.Events == nil {
		opts.Events = &Events{}
	}
	c := &Conn{opts: opts, nc: nc, opened: nanotime(), done: make(chan struct{}), kind: opts.Kind}
	c.lastRead.Store(nanotime())
	c.cond.L = &c.mu
	c.wfn = c.writeReady
	if sc, ok := nc.(syscall.Conn); ok {
		c.rc, _ = sc.SyscallConn()
	}
	if opts.Shared {
		c.shared.Store(true)
		c.policy = NewPolicy(opts.Policy)
		if opts.RoundTrip > 0 {
			c.policy.ObserveRoundTrip(nanotime(), opts.RoundTrip)
		}
		c.delayed = c.policy.Delay() > 0
	}
	if f := opts.Events.Opened; f != nil {
		f(opts.Kind)
	}
	go c.read()
	return c
}

// ID is the server's own id of this connection, 0 where it is not known.
func (c *Conn) ID() int64 { return c.opts.ID }

// Name is the name under which the server lists this connection, empty where it has none.
func (c *Conn) Name() string { return c.opts.Name }

// OlderThan reports whether the connection was there before another.
func (c *Conn) OlderThan(other *Conn) bool { return c.opened < other.opened }

// Submit queues n complete commands of sink, raw being exactly their bytes, and
// sees to it that they leave when the policy says so. It blocks only while more
// than 1 MiB waits for the socket. seat is nil on a connection that is the caller's
// alone. It returns ErrRetired, also for a seat that has run out, or ErrDead, and has
// then taken nothing.
func (c *Conn) Submit(sink Sink, seat *Seat, raw []byte, n int) error {
	return c.submit(sink, seat, raw, n, 0)
}

// Collect is Submit on a connection that is the caller's alone, who has more to come at
// once: they stay in the queue until there is a good write's worth, or more is submitted, or
// the caller calls Push, which it must before it waits for anything.
func (c *Conn) Collect(sink Sink, raw []byte, n int) error {
	return c.submit(sink, nil, raw, n, collected)
}

// Push sends what has been collected.
func (c *Conn) Push() {
	c.mu.Lock()
	if len(c.out) == 0 || c.status == dead { // the reader fails what was collected
		c.mu.Unlock()
		return
	}
	lead, arm := c.undertake()
	c.mu.Unlock()
	c.follow(lead, arm)
}

// submit queues, and leaves what is in the queue then if it is no more than kept bytes.
func (c *Conn) submit(sink Sink, seat *Seat, raw []byte, n, kept int) error {
	c.mu.Lock()
	for len(c.out) > maxQueued && c.status == live {
		c.cond.Wait()
	}
	if err := c.refusal(seat); err != nil {
		c.mu.Unlock()
		return err
	}
	var member *Member
	if seat != nil {
		member = seat.member
	}
	if len(c.out) == 0 {
		c.first = nanotime()
	}
	c.enqueue(raw)
	c.queued += n
	c.fifo.push(sink, member, n)
	c.fault(raw, n)
	if c.delayed {
		c.noteArrival(member, n)
	}
	if len(c.out) <= kept {
		c.mu.Unlock()
		return nil
	}
	lead, arm := c.undertake()
	c.mu.Unlock()
	c.follow(lead, arm)
	return nil
}

// follow does what undertake has decided.
func (c *Conn) follow(lead bool, arm time.Duration) {
	switch {
	case lead:
		c.lead()
	case arm > 0:
		c.timer.Arm(arm)
	}
}

func (c *Conn) refusal(seat *Seat) error {
	switch {
	case c.status == dead:
		return ErrDead
	case c.status == retired, seat != nil && seat.epoch != c.epoch:
		return ErrRetired
	}
	return nil
}

func (c *Conn) noteArrival(member *Member, n int) {
	now := nanotime()
	if member != nil {
		c.activity.Sent(member, now, n)
	}
	c.policy.Arrived(now, n)
}

// SubmitLast queues one command behind which nothing may travel, because the server
// may not answer it for long, and retires the connection in the same step. It
// returns ErrRetired for a connection that is not a lane's: that is somebody's own.
func (c *Conn) SubmitLast(sink Sink, raw []byte) error {
	c.mu.Lock()
	err := c.refusal(nil)
	if err == nil && !c.shared.Load() {
		err = ErrRetired
	}
	if err != nil {
		c.mu.Unlock()
		return err
	}
	c.status = retired
	c.patient = true
	if len(c.out) == 0 {
		c.first = nanotime()
	}
	c.enqueue(raw)
	c.queued++
	c.fifo.push(sink, nil, 1)
	c.cond.Broadcast()
	lead, arm := c.undertake()
	c.mu.Unlock()
	c.follow(lead, arm)
	return nil
}

// Join takes a seat on a shared connection. It returns false if that is not, or no
// more, a lane's.
func (c *Conn) Join(seat *Seat) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != live || !c.shared.Load() {
		return false
	}
	seat.member, seat.epoch = new(Member), c.epoch
	c.seats.Add(1)
	return true
}

// Leave gives up a seat. Nothing may be in flight for it.
func (c *Conn) Leave(seat *Seat) {
	c.mu.Lock()
	c.activity.Left(seat.member)
	if seat.epoch == c.epoch {
		c.seats.Add(-1)
	}
	c.mu.Unlock()
}

// IdleFor is how long nothing has been in flight, 0 while something is.
func (c *Conn) IdleFor() time.Duration {
	if c.InFlight() > 0 {
		return 0
	}
	return time.Duration(nanotime() - c.lastRead.Load())
}

// Dead reports whether the connection is lost.
func (c *Conn) Dead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status == dead
}

// InFlight is the number of commands queued or unanswered.
func (c *Conn) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queued + c.inflight
}

// Close ends the connection now. What it owes is failed by its reader; Done tells
// when that is over.
func (c *Conn) Close() { c.kill(errClosed) }

// Done is closed when every command has been answered or failed.
func (c *Conn) Done() <-chan struct{} { return c.done }

// kill records why the connection ends (the first reason stays) and shuts the
// socket down, which wakes the reader, which does the rest. It may be called by the
// reader itself, from within a Sink: closing the socket there would wait for that
// very reader.
func (c *Conn) kill(cause error) {
	c.mu.Lock()
	c.die(cause)
	c.mu.Unlock()
	shutdown(socket(c.nc))
}

// die is kill's part under the lock.
func (c *Conn) die(cause error) {
	if c.cause == nil {
		c.cause = cause
	}
	c.status = dead
	c.cond.Broadcast()
}

// past is a deadline that has passed: it wakes a reader.
var past = time.Unix(1, 0)

// shutdown ends both directions of a connection without giving up its descriptor. The
// deadline is for a connection that was reset: there is nothing left to shut down, and
// an event that the reader did not take up will not come again.
func shutdown(nc net.Conn) {
	defer func() { _ = nc.SetReadDeadline(past) }() // fails where nobody reads any more
	h, ok := nc.(interface {
		CloseRead() error
		CloseWrite() error
	})
	if !ok {
		_ = nc.Close()
		return
	}
	// Errors say that it is shut down already.
	_ = h.CloseRead()
	_ = h.CloseWrite()
}

// Kind is the connection's present role.
func (c *Conn) Kind() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kind
}

package batcher

// Member is one session's place in an Activity, and of no other one: the Activity may hear of a
// member once more after it has left. The zero value has sent nothing.
type Member struct {
	// outstanding counts commands sent and not answered.
	outstanding int
	// lastSent is when it sent last, in the clock of the Activity's caller.
	lastSent int64
	// era is the Activity's era that the other fields belong to.
	era uint64

	// answered is set if a reply came since the session last had none outstanding.
	answered bool
	// streaming counts down the chunks for which a session still counts as one that
	// does not wait for replies.
	streaming uint8

	listed     bool
	prev, next *Member
}

// streamingChunks is for how many chunks a session that was seen to send
// between its replies counts as streaming, if it does not do so again.
const streamingChunks = 4

// Activity knows which sessions of a lane sent something lately and may send
// again at any moment. A batch is worth holding back only for them.
//
// Most clients send, wait for all replies, and send again: while one waits,
// nothing is to be expected of it. A multiplexing client, which many callers
// share, sends without waiting; over a long path it never is without a command
// in flight and yet is the best company for a batch. It is told from a client
// that merely needs several chunks for one pipeline by a reply that came in
// between.
//
// Those who may send are kept in a list ordered by their last command. A
// session enters when its last reply arrives, leaves when it sends (a streaming
// one moves to the end instead), and falls off the front when it has been
// silent for longer than the window. Every operation is constant-time,
// amortised, and allocates nothing.
//
// An Activity may be switched on while commands are in flight: a reply to a
// command it never saw is ignored, and for one round trip it may take a waiting
// session for an idle one, which costs somebody one flush delay. It is not safe
// for concurrent use; the caller's lock covers it and its members. The zero
// value is ready.
type Activity struct {
	front, back *Member
	listed      int
	era         uint64
}

// maxReorder bounds the search for a session's place in the list. Replies of
// one lane come in the order of its commands, so the place is the end or next
// to it; where it is not, a slightly wrong place only postpones an expiry.
const maxReorder = 8

// Sent notes a chunk with n commands of m, queued or written at time now.
func (a *Activity) Sent(m *Member, now int64, n int) {
	if n <= 0 {
		return
	}
	a.welcome(m)
	if m.listed {
		a.unlist(m)
	}
	switch {
	case m.outstanding > 0 && m.answered:
		m.streaming = streamingChunks
	case m.outstanding == 0 && m.streaming > 0:
		m.streaming--
	}
	if m.outstanding == 0 {
		m.answered = false
	}
	m.outstanding += n
	m.lastSent = now
	if m.streaming > 0 {
		a.list(m)
	}
}

// Answered notes the replies to n commands of m. Replies to more than were
// sent are ignored.
func (a *Activity) Answered(m *Member, n int) {
	a.welcome(m)
	if n <= 0 || m.outstanding == 0 {
		return
	}
	m.outstanding -= min(n, m.outstanding)
	m.answered = true
	if m.outstanding == 0 && !m.listed {
		a.list(m)
	}
}

// Left forgets m. Replies to it that are booked later are ignored.
func (a *Activity) Left(m *Member) {
	a.welcome(m)
	if m.listed {
		a.unlist(m)
	}
	*m = Member{}
}

// IdleActive returns how many sessions sent something within the last window
// nanoseconds and have every reply or do not wait for replies. One that sent
// exactly window ago counts.
func (a *Activity) IdleActive(now, window int64) int {
	for a.front != nil && now-a.front.lastSent > window {
		a.unlist(a.front)
	}
	return a.listed
}

// Reset forgets every session. It is for switching on again after a time in
// which Sent and Answered were not called, when the counts have become wrong.
func (a *Activity) Reset() {
	for a.front != nil {
		a.unlist(a.front)
	}
	a.era++
}

// welcome discards what m carries from before the last Reset.
func (a *Activity) welcome(m *Member) {
	if m.era != a.era {
		*m = Member{era: a.era}
	}
}

// list puts m where its last command belongs, searching from the back.
func (a *Activity) list(m *Member) {
	before := a.back
	for i := 0; i < maxReorder && before != nil && before.lastSent > m.lastSent; i++ {
		before = before.prev
	}
	m.prev = before
	if before == nil {
		m.next, a.front = a.front, m
	} else {
		m.next, before.next = before.next, m
	}
	if m.next == nil {
		a.back = m
	} else {
		m.next.prev = m
	}
	m.listed = true
	a.listed++
}

// unlist takes m out of the list and cuts its links, so that a session that
// has gone is not kept alive by another.
func (a *Activity) unlist(m *Member) {
	if m.prev == nil {
		a.front = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		a.back = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.prev, m.next, m.listed = nil, nil, false
	a.listed--
}

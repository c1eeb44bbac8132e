package batcher

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// lab is a lane in miniature: callers, a queue, an upstream that answers each
// batch one round trip later, and the policy in between, all in fake time. It
// takes the steps a lane takes, in the order in which a lane takes them.
type lab struct {
	policy   *Policy
	activity Activity
	rtt      int64
	rnd      *rand.Rand

	now    int64
	events agenda
	// scheduled numbers the events, so that equal times keep their order.
	scheduled int

	queue  []queued
	flight int
	armed  int64 // the pending timer, 0: none

	stats labStats
}

// labStats is what a run is judged by; times in nanoseconds.
type labStats struct {
	commands, batches     int
	waited, longest       int64
	byReason              [numFlushReasons]int
	waitedWhileIdle       int // decisions to wait with nothing in flight
	heldBeyond            int // commands sent later than D after they were queued
	nobodyLeftOut, orphan int // waits without anybody idle; commands never sent
}

func (s labStats) perBatch() float64 { return float64(s.commands) / float64(max(s.batches, 1)) }

func (s labStats) meanWait() time.Duration {
	return time.Duration(s.waited / int64(max(s.commands, 1)))
}

type queued struct {
	at   int64
	from *caller
}

// caller sends one command at a time or, with a gap, whenever its next is due.
type caller struct {
	member Member
	// think returns the time from a reply to the next command; nil for open loop.
	think func() int64
	// gap returns the time from one command to the next; nil for closed loop.
	gap func() int64
}

// event is something that happens at a time; order breaks ties.
type event struct {
	at    int64
	order int
	do    func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// newLab returns a lab whose policy has already seen the round trip.
func newLab(c PolicyConfig, rtt time.Duration) *lab {
	l := &lab{policy: NewPolicy(c), rtt: int64(rtt), rnd: rand.New(rand.NewPCG(7, 8)), now: 1}
	l.policy.ObserveRoundTrip(l.now, rtt)
	return l
}

func (l *lab) after(d int64, do func()) {
	l.scheduled++
	heap.Push(&l.events, event{at: l.now + d, order: l.scheduled, do: do})
}

// join adds a caller that sends first after start.
func (l *lab) join(c *caller, start time.Duration) { l.after(int64(start), func() { l.send(c) }) }

// exponential draws pauses with the given mean, as of independent strangers.
func (l *lab) exponential(mean time.Duration) func() int64 {
	return func() int64 { return int64(l.rnd.ExpFloat64() * float64(mean)) }
}

// run lets d pass. What is still queued at the end has a timer to wait for.
func (l *lab) run(d time.Duration) labStats {
	end := l.now + int64(d)
	for len(l.events) > 0 && l.events[0].at <= end {
		e := heap.Pop(&l.events).(event)
		l.now = max(l.now, e.at)
		e.do()
	}
	if len(l.queue) > 0 && l.armed == 0 {
		l.stats.orphan += len(l.queue)
	}
	return l.stats
}

// send is a chunk of one command arriving from a client.
func (l *lab) send(c *caller) {
	l.queue = append(l.queue, queued{l.now, c})
	l.activity.Sent(&c.member, l.now, 1)
	if l.policy.Delay() > 0 {
		l.policy.Arrived(l.now, 1)
	}
	if c.gap != nil {
		l.after(c.gap(), func() { l.send(c) })
	}
	l.decide()
}

func (l *lab) decide() {
	if len(l.queue) == 0 {
		return
	}
	s := State{
		Now: l.now, FirstQueued: l.queue[0].at, Commands: len(l.queue), Bytes: 64 * len(l.queue), InFlight: l.flight,
		IdleActive: l.activity.IdleActive(l.now, int64(l.policy.ActiveWindow())),
	}
	d := l.policy.Decide(s)
	if d.Send {
		l.flush(d.Reason)
		return
	}
	if s.InFlight == 0 {
		l.stats.waitedWhileIdle++
	}
	if s.IdleActive == 0 {
		l.stats.nobodyLeftOut++
	}
	if l.armed != d.At {
		l.armed = d.At
		l.after(d.At-l.now, func() {
			if l.armed == l.now {
				l.armed = 0
				l.decide()
			}
		})
	}
}

func (l *lab) flush(reason FlushReason) {
	batch := l.queue
	l.queue, l.armed = nil, 0
	for _, q := range batch {
		wait := l.now - q.at
		l.stats.waited += wait
		l.stats.longest = max(l.stats.longest, wait)
		if wait > int64(l.policy.Delay()) {
			l.stats.heldBeyond++
		}
	}
	l.stats.commands += len(batch)
	l.stats.batches++
	l.stats.byReason[reason]++
	l.flight += len(batch)
	l.after(l.rtt, func() { l.answer(batch) })
}

// answer is the chunk with the replies to one batch.
func (l *lab) answer(batch []queued) {
	for _, q := range batch {
		l.activity.Answered(&q.from.member, 1)
		l.flight--
		if c := q.from; c.think != nil {
			l.after(c.think(), func() { l.send(c) })
		}
	}
	l.decide()
}

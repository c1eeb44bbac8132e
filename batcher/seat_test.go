package batcher

import (
	"testing"
	"time"
)

// mover changes from one connection to another as soon as its reply is there, and sends there.
type mover struct {
	*recorder
	seat     *Seat
	from, to *Conn
}

func (m mover) Reply(b []byte, done, open int) {
	if done > 0 {
		m.from.Leave(m.seat)
		m.to.Join(m.seat)
		_ = m.to.Submit(m.recorder, m.seat, get("there"), 1) // its reply tells
	}
	m.recorder.Reply(b, done, open)
}

// A session has left its lane, and has something in flight on the next one, before the reader of
// the first books its last reply: that is nothing to either's count of those who may send.
func TestSessionMovesWithItsLastReply(t *testing.T) {
	from, p, first := lane(t, time.Millisecond, nil)
	to, _, _ := lane(t, time.Millisecond, nil)
	count := func(c *Conn) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.activity.listed
	}
	company := count(to)
	var seat, other Seat
	from.Join(&seat)
	from.Join(&other)
	m := mover{newRecorder(), &seat, from, to}
	if err := from.Submit(m, &seat, get("here"), 1); err != nil {
		t.Fatal(err)
	}
	p.take(1)
	p.send(bulk("first") + bulk("here"))
	m.expect(t, 1, bulk("here"))
	if err := from.Submit(first, &other, get("behind"), 1); err != nil {
		t.Fatal(err)
	}
	p.take(1)
	p.send(bulk("behind")) // when it has come, the chunk before has been booked
	first.expect(t, 2, bulk("first")+bulk("behind"))
	if got := count(to); got != company {
		t.Errorf("%d are listed where the session waits for its reply, want %d", got, company)
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	for l := from.activity.front; l != nil; l = l.next {
		if l.lastSent == seat.member.lastSent {
			t.Error("the session is listed where it was")
		}
	}
}

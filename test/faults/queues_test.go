//go:build faults

package faults

import (
	"fmt"
	"strings"
	"sync"

	"streamproxy/internal/redistest"
)

// queue is the ledger of one list that some push to and others pop from, blocking: every element is
// somebody's once.
type queue struct {
	key string

	mu     sync.Mutex
	pushed map[string]entry
	popped map[string]int
	doubts int // pops that may have taken an element that nobody saw
}

func (l *lab) newQueue(key string) *queue {
	q := &queue{key: key, pushed: make(map[string]entry), popped: make(map[string]int)}
	l.mu.Lock()
	l.queues = append(l.queues, q)
	l.mu.Unlock()
	return q
}

// pusher appends elements that are all different.
func (l *lab) pusher(id int, q *queue) {
	s := l.newSession("pushes", id)
	defer s.drop()
	for n := 0; s.connect(); n++ {
		losses := l.losses.Load()
		size := 1 + s.rnd.IntN(5)
		var raw strings.Builder
		elements := make([]string, size)
		for i := range elements {
			elements[i] = fmt.Sprintf("%d:%d:%d", id, n, i)
			raw.WriteString(redistest.Command("LPUSH", q.key, elements[i]))
		}
		verdicts := make([]verdict, size)
		for i, reply := range s.exchange(raw.String(), size, false) {
			verdicts[i] = verdictOf(reply)
			if verdicts[i] == done && length(reply) == 0 {
				l.tally.violate("P1", "%s %d: LPUSH was answered %.80q", s.kind, id, reply)
			}
			q.mu.Lock()
			q.pushed[elements[i]] = entry{verdicts[i], losses}
			q.mu.Unlock()
		}
		l.tally.count(s.kind, verdicts...)
		l.pace(s)
	}
}

// popper takes elements with commands that block, and leaves now and then while it waits.
func (l *lab) popper(id int, q *queue) {
	s := l.newSession("blocking pops", id)
	defer s.drop()
	for s.connect() {
		args := [][]string{
			{"BRPOP", q.key, "q:none", "1"},
			{"BLPOP", "q:none", q.key, "0.2"},
			{"BLMPOP", "1", "2", "q:none", q.key, "RIGHT"},
		}[s.rnd.IntN(3)]
		if s.rnd.IntN(50) == 0 { // nobody will see what this one brings
			_ = s.c.SendCommand(args...)
			s.drop()
			q.mu.Lock()
			q.doubts++
			q.mu.Unlock()
			l.tally.count(s.kind, lost)
			continue
		}
		reply := s.ask(false, args...)
		v := verdictOf(reply)
		l.tally.count(s.kind, v)
		q.mu.Lock()
		switch lines := strings.Split(reply, "\r\n"); {
		case v.doubtful():
			q.doubts++
		case v.certain(), reply == "*-1\r\n":
		case len(lines) < 3 || lines[2] != q.key:
			l.tally.violate("P1", "%s %d: %q was answered %.80q", s.kind, id, args, reply)
		default:
			q.popped[lines[len(lines)-2]]++
		}
		q.mu.Unlock()
	}
}

// verify compares the ledger with what is left of the list.
func (q *queue) verify(left []string, t *tally, losses uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range left {
		q.popped[e]++
	}
	for e, n := range q.popped {
		p, ok := q.pushed[e]
		switch {
		case !ok:
			t.violate("P1", "%s brought %.60q, which nobody pushed", q.key, e)
		case n > 1:
			t.violate("P3", "%s brought %s (%v) %d times", q.key, e, p.verdict, n)
		case p.verdict.certain():
			t.violate("P3", "%s brought %s, whose push was told %v", q.key, e, p.verdict)
		}
	}
	missing := 0
	for e, p := range q.pushed {
		if p.verdict == done && p.losses == losses && q.popped[e] == 0 {
			missing++
		}
	}
	if missing > q.doubts {
		t.violate("P3", "%s: %d elements are gone, and only %d pops have no known outcome", q.key, missing, q.doubts)
	}
}

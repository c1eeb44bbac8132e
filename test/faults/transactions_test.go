//go:build faults

package faults

import (
	"strconv"
	"strings"
	"sync"
)

// account is the ledger of a number that several clients raise by one under WATCH: its history at
// the server has no gap and no repetition, or an update was lost.
type account struct {
	key, history string

	mu   sync.Mutex
	sure map[string]entry // values that EXEC has confirmed
}

func (l *lab) newAccount(name string) *account {
	a := &account{key: "acc:" + name, history: "acchist:" + name, sure: make(map[string]entry)}
	l.mu.Lock()
	l.accounts = append(l.accounts, a)
	l.mu.Unlock()
	return a
}

// watcher raises the account, one command after the other.
func (l *lab) watcher(id int, a *account) {
	s := l.newSession("watched transactions", id)
	defer s.drop()
	for s.connect() {
		if s.rnd.IntN(100) == 0 {
			s.drop()
			continue
		}
		l.raise(s, a)
		l.pace(s)
	}
}

// raise tries once. A step that does not answer as it should ends the attempt, and with it the
// connection, so that no transaction is left open.
func (l *lab) raise(s *session, a *account) {
	losses := l.losses.Load()
	step := func(want string, args ...string) bool {
		reply := s.ask(true, args...)
		v := verdictOf(reply)
		l.tally.count(s.kind, v)
		if reply == want {
			return true
		}
		if v == done {
			l.tally.violate("P1", "%s %d: %q was answered %.80q", s.kind, s.id, args, reply)
		}
		s.drop()
		return false
	}
	if !step("+OK\r\n", "WATCH", a.key) {
		return
	}
	reply := s.ask(true, "GET", a.key)
	l.tally.count(s.kind, verdictOf(reply))
	text, ok := unbulk(reply)
	if !ok && reply != "$-1\r\n" {
		s.drop()
		return
	}
	old, err := strconv.Atoi(text)
	if ok && err != nil {
		l.tally.violate("P1", "%s %d: GET %s was answered %.80q", s.kind, s.id, a.key, reply)
		return
	}
	value := strconv.Itoa(old + 1)
	if !step("+OK\r\n", "MULTI") || !step("+QUEUED\r\n", "SET", a.key, value) || !step("+QUEUED\r\n", "RPUSH", a.history, value) {
		return
	}
	reply = s.ask(true, "EXEC")
	v := verdictOf(reply)
	l.tally.count(s.kind, v)
	switch {
	case v != done:
		s.drop()
	case strings.HasPrefix(reply, "*2\r\n+OK\r\n:"):
		a.mu.Lock()
		if _, twice := a.sure[value]; twice && losses == l.losses.Load() && a.sure[value].losses == losses {
			l.tally.violate("P3", "%s was raised to %s twice: an update is lost", a.key, value)
		}
		a.sure[value] = entry{done, losses}
		a.mu.Unlock()
	case reply != "*-1\r\n":
		l.tally.violate("P1", "%s %d: EXEC was answered %.80q", s.kind, s.id, reply)
	}
}

// verify compares the ledger with the history that the server kept.
func (a *account) verify(history []string, t *tally, losses uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := make(map[string]bool)
	for i, text := range history {
		if text != strconv.Itoa(i+1) {
			t.violate("P3", "%s: the %d. value is %.40q: an update is lost", a.history, i+1, text)
			return
		}
		seen[text] = true
	}
	for value, e := range a.sure {
		if !seen[value] && e.losses == losses {
			t.violate("P1", "%s: EXEC confirmed %s, which did not happen", a.history, value)
		}
	}
}

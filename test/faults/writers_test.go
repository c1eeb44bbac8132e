//go:build faults

package faults

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"streamproxy/internal/redistest"
)

// step is one command of a pipeline and what can be said of its reply.
type step struct {
	raw   string
	seq   int    // of an append to the diary, else -1
	value string // of a SET
	want  string // the only answer there is, if there is one
	get   bool   // of the register
}

// register is the ledger of one key that one client alone sets: what a GET may find.
type register struct {
	key     string
	known   string          // the last value answered for; "" is none
	doubts  map[string]bool // values that may yet appear
	written uint64          // losses when known was
}

// writer sends pipelines of appends, echoes and values that say whose they are, of up to depth
// commands; 1 is a client that waits for every reply.
func (l *lab) writer(id, depth int) {
	kind := "pipelines"
	switch {
	case depth == 1:
		kind = "one at a time"
	case depth > 100:
		kind = "long pipelines"
	}
	s := l.newSession(kind, id)
	defer s.drop()
	for s.connect() {
		name := fmt.Sprintf("%d:%d", id, s.life)
		d := l.newDiary("log:" + name)
		r := &register{key: "v:" + name, doubts: make(map[string]bool)}
		for n := 0; s.c != nil && !l.stopping(); n++ {
			if s.rnd.IntN(400) == 0 {
				s.drop()
				break
			}
			l.play(s, d, r, 1+s.rnd.IntN(depth), n)
			l.pace(s)
		}
	}
}

// play sends one pipeline and judges its replies.
func (l *lab) play(s *session, d *diary, r *register, n, round int) {
	losses := l.losses.Load()
	steps := make([]step, n)
	var raw strings.Builder
	for i := range steps {
		steps[i] = draw(s, d, r, fmt.Sprintf("%d:%d:%d:%d", s.id, s.life, round, i), losses)
		raw.WriteString(steps[i].raw)
	}
	replies := s.exchange(raw.String(), n, false)
	verdicts := make([]verdict, n)
	for i, reply := range replies {
		verdicts[i] = verdictOf(reply)
		l.judge(s, d, r, &steps[i], reply, losses)
	}
	l.tally.count(s.kind, verdicts...)
	if torn(verdicts) {
		l.tally.violate("P3", "%s %d: a torn pipeline: %v", s.kind, s.id, verdicts)
	}
}

// torn reports whether something was executed behind what may not have been.
func torn(verdicts []verdict) bool {
	worst := done
	for _, v := range verdicts {
		switch {
		case v == lost: // the rest has no verdict at all
			return false
		case v == done, v == refused:
			if worst >= notSent {
				return true
			}
		case v == unknown && worst == notSent:
			return true
		default:
			worst = v
		}
	}
	return false
}

// draw chooses a command.
func draw(s *session, d *diary, r *register, name string, losses uint64) step {
	switch k := s.rnd.IntN(10); {
	case k < 5:
		seq := d.next(losses)
		return step{raw: redistest.Command("RPUSH", d.key, strconv.Itoa(seq)), seq: seq}
	case k < 7:
		return step{raw: redistest.Command("ECHO", name), seq: -1, want: bulk(name)}
	case k < 8:
		value := name + ":" + strings.Repeat("x", s.rnd.IntN(300))
		return step{raw: redistest.Command("SET", r.key, value), seq: -1, value: value, want: "+OK\r\n"}
	}
	if s.rnd.IntN(40) == 0 { // waits for what is before it, and what is behind it waits too
		return step{raw: redistest.Command("BLPOP", "q:none", "0.01"), seq: -1, want: "*-1\r\n"}
	}
	return step{raw: redistest.Command("GET", r.key), seq: -1, get: true}
}

// judge takes one reply down.
func (l *lab) judge(s *session, d *diary, r *register, st *step, reply string, losses uint64) {
	v := verdictOf(reply)
	wrong := false
	switch {
	case st.seq >= 0:
		wrong = !d.settle(st.seq, v, length(reply), l.losses.Load()) || v == done && length(reply) == 0
	case st.get:
		wrong = v == done && !r.canBe(reply, l.losses.Load())
	default:
		wrong = v == done && reply != st.want
		if st.value != "" {
			r.set(st.value, v, losses)
		}
	}
	if wrong {
		l.tally.violate("P1", "%s %d: to %.60q came %.80q", s.kind, s.id, st.raw, reply)
	}
}

// set notes what became of a value.
func (r *register) set(value string, v verdict, losses uint64) {
	switch {
	case v == done:
		r.known, r.written = value, losses
	case v.doubtful():
		r.doubts[value] = true
	}
}

// canBe reports whether a GET may have brought this.
func (r *register) canBe(reply string, losses uint64) bool {
	text, ok := unbulk(reply)
	if !ok {
		return reply == "$-1\r\n" && (r.known == "" || losses != r.written)
	}
	return text == r.known || r.doubts[text]
}

// whole sends transactions in one write, each of which appends the same to two lists.
func (l *lab) whole(id int) {
	s := l.newSession("whole transactions", id)
	defer s.drop()
	for s.connect() {
		a, b := l.newDiary(fmt.Sprintf("a:%d:%d", id, s.life)), l.newDiary(fmt.Sprintf("b:%d:%d", id, s.life))
		l.twins(a, b)
		for s.c != nil && !l.stopping() {
			if s.rnd.IntN(300) == 0 {
				s.drop()
				break
			}
			l.playWhole(s, a, b)
			l.pace(s)
		}
	}
}

func (l *lab) playWhole(s *session, a, b *diary) {
	losses := l.losses.Load()
	seq := a.next(losses)
	b.next(losses)
	text := strconv.Itoa(seq)
	raw := redistest.Command("MULTI") + redistest.Command("RPUSH", a.key, text) +
		redistest.Command("RPUSH", b.key, text) + redistest.Command("EXEC")
	replies := s.exchange(raw, 4, false)
	v := verdictOf(replies[3])
	var na, nb int
	if v == done {
		lines := strings.Split(replies[3], "\r\n")
		if len(lines) == 4 && lines[0] == "*2" {
			na, nb = length(lines[1]+"\r\n"), length(lines[2]+"\r\n")
		}
	}
	now := l.losses.Load()
	okA, okB := a.settle(seq, v, na, now), b.settle(seq, v, nb, now)
	if v == done && (!okA || !okB || na == 0 || nb == 0 || replies[0] != "+OK\r\n" || replies[1] != "+QUEUED\r\n") {
		l.tally.violate("P1", "%s %d: a transaction was answered %.200q", s.kind, s.id, replies)
	}
	l.tally.count(s.kind, verdictOf(replies[0]), verdictOf(replies[1]), verdictOf(replies[2]), v)
}

// pace lets a client think for a moment now and then.
func (l *lab) pace(s *session) {
	l.halt()
	if l.think > 0 {
		l.pause(time.Duration(s.rnd.Int64N(int64(2 * l.think))))
	}
}

//go:build faults

package faults

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/internal/resp"
)

const (
	// group is what the workers read as.
	group = "g"
	// minIdle is after how long they take over what another has left pending.
	minIdle = 2 * time.Second
	// clockGrain is how far two readings of the server's cached clock may be off.
	clockGrain = 50 * time.Millisecond
	// claimedAhead is how long before a worker asks by XAUTOCLAIM its entries may have been claimed:
	// the proxy claims for the further streams of a pass too, and hands out what that has brought if it
	// is no older than a tenth of the min-idle time (docs/streams.md). To the server they are idle since.
	claimedAhead = minIdle / 10
)

// stream is the ledger of one stream, entry by entry: what was added, who got it, who acked it.
type stream struct {
	key string

	mu      sync.Mutex
	added   map[string]verdict    // by the entry's own text
	arrived map[string][]delivery // by id
}

// delivery is one arrival of an entry at a worker.
type delivery struct {
	by         string // worker and command
	asked, got time.Time
	acked      time.Time // when the ack was answered; zero: it was not, or not with 1
	tried      bool      // whether an ack was sent
}

func (l *lab) newStream(key string) *stream {
	st := &stream{key: key, added: make(map[string]verdict), arrived: make(map[string][]delivery)}
	l.streams = append(l.streams, st)
	l.server.Do("XGROUP", "CREATE", key, group, "0", "MKSTREAM")
	return st
}

// producer adds entries that say what they are, until entries stop being wanted.
func (l *lab) producer(id int, streams []*stream) {
	s := l.newSession("stream producers", id)
	defer s.drop()
	for n := 0; s.connect() && !l.settling.Load(); n++ {
		st := streams[s.rnd.IntN(len(streams))]
		size := 1 + s.rnd.IntN(4)
		var raw strings.Builder
		texts := make([]string, size)
		for i := range texts {
			texts[i] = fmt.Sprintf("%d:%d:%d", id, n, i)
			raw.WriteString(redistest.Command("XADD", st.key, "*", "f", texts[i]))
		}
		verdicts := make([]verdict, size)
		for i, reply := range s.exchange(raw.String(), size, false) {
			verdicts[i] = verdictOf(reply)
			if _, isText := unbulk(reply); verdicts[i] == done && !isText {
				l.tally.violate("P1", "%s %d: XADD was answered %.80q", s.kind, id, reply)
			}
			st.mu.Lock()
			st.added[texts[i]] = verdicts[i]
			st.mu.Unlock()
		}
		l.tally.count(s.kind, verdicts...)
		l.pause(time.Duration(5+s.rnd.IntN(40)) * time.Millisecond)
	}
}

// worker reads the streams, takes over what is abandoned, acks what it gets, and dies now and then
// with entries unacked. Some ask for abandoned entries themselves, others never do.
func (l *lab) worker(id int, streams []*stream) {
	s := l.newSession("stream workers", id)
	s.mayClose = true // a lost private connection that waits for entries
	defer s.drop()
	name := "w" + strconv.Itoa(id)
	byKey := make(map[string]*stream)
	for _, st := range streams {
		byKey[st.key] = st
	}
	keys := slices.Sorted(maps.Keys(byKey))
	for s.connect() {
		if id%2 == 0 {
			for _, key := range keys {
				if s.c == nil {
					break
				}
				asked := time.Now()
				reply := s.ask(true, "XAUTOCLAIM", key, group, name, strconv.FormatInt(minIdle.Milliseconds(), 10), "0-0", "COUNT", "20")
				l.tally.count(s.kind, verdictOf(reply))
				v, ok := l.parse(s, reply)
				if ok && len(v.Elems) >= 2 {
					l.take(s, byKey[key], name+" by XAUTOCLAIM", v.Elems[1], asked)
				}
			}
		}
		if s.c == nil {
			continue
		}
		args := []string{"XREADGROUP", "GROUP", group, name, "COUNT", "10", "BLOCK", strconv.Itoa(100 + s.rnd.IntN(400)), "STREAMS"}
		args = append(args, keys...)
		for range keys {
			args = append(args, ">")
		}
		asked := time.Now()
		reply := s.ask(true, args...)
		l.tally.count(s.kind, verdictOf(reply))
		v, ok := l.parse(s, reply)
		if !ok || v.Null {
			continue
		}
		for _, part := range v.Elems {
			if st := byKey[string(part.Elems[0].Text)]; st == nil {
				l.tally.violate("P1", "%s %d: a stream of somebody else's: %.80q", s.kind, id, reply)
			} else {
				l.take(s, st, name+" by XREADGROUP", part.Elems[1], asked)
			}
		}
	}
}

// parse decodes an answer; false means that there is none.
func (l *lab) parse(s *session, reply string) (resp.Value, bool) {
	if verdictOf(reply) != done {
		return resp.Value{}, false
	}
	v, _, err := resp.Parse([]byte(reply))
	if err != nil || v.Kind != '*' && !v.Null {
		l.tally.violate("P1", "%s %d: got %.120q", s.kind, s.id, reply)
		return v, false
	}
	return v, true
}

// take notes the entries of a list and acks them, unless the worker dies of it.
func (l *lab) take(s *session, st *stream, by string, list resp.Value, asked time.Time) {
	if len(list.Elems) == 0 {
		return
	}
	ids := make([]string, len(list.Elems))
	now := time.Now()
	dies := !l.settling.Load() && s.rnd.IntN(10) == 0
	st.mu.Lock()
	for i, e := range list.Elems {
		ids[i] = string(e.Elems[0].Text)
		d := delivery{by: by, asked: asked, got: now, tried: !dies}
		l.checkDelivery(st, ids[i], d)
		st.arrived[ids[i]] = append(st.arrived[ids[i]], d)
	}
	st.mu.Unlock()
	if dies {
		s.drop()
		return
	}
	if s.c == nil {
		return
	}
	var raw strings.Builder
	for _, id := range ids {
		raw.WriteString(redistest.Command("XACK", st.key, group, id))
	}
	replies := s.exchange(raw.String(), len(ids), true)
	now = time.Now()
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, reply := range replies {
		l.tally.count(s.kind, verdictOf(reply))
		if verdictOf(reply) == done && reply != ":1\r\n" && reply != ":0\r\n" {
			l.tally.violate("P1", "%s %d: XACK was answered %.80q", s.kind, s.id, reply)
		}
		if d := st.arrived[ids[i]]; reply == ":1\r\n" {
			d[len(d)-1].acked = now
		}
	}
}

// earliest is when the server may have handed the entry out.
func (d *delivery) earliest() time.Time {
	if strings.HasSuffix(d.by, "XAUTOCLAIM") {
		return d.asked.Add(-claimedAhead)
	}
	return d.asked
}

// checkDelivery looks for what a new arrival contradicts. The ledger's lock is held. Each bound is
// on the safe side: the server handed an entry out after it was asked (or claimedAhead of that) and
// before the reply arrived, and which of two arrivals it handed out first is not known, as a reply may have been held up.
func (l *lab) checkDelivery(st *stream, id string, now delivery) {
	for _, d := range st.arrived[id] {
		if !d.acked.IsZero() && now.asked.After(d.acked) {
			l.tally.violate("P6", "%s: %s came to %s again %v after its ack by %s", st.key, id, now.by, now.asked.Sub(d.acked), d.by)
		}
		if now.got.Sub(d.earliest()) < minIdle-clockGrain && d.got.Sub(now.earliest()) < minIdle-clockGrain {
			l.tally.violate("P6", "%s: %s came twice: to %s (%v after it was asked), and to %s (asked %v, got %v later), %s", st.key, id,
				d.by, d.got.Sub(d.asked), now.by, now.asked.Sub(d.asked), now.got.Sub(d.asked), l.story(st, id))
		}
	}
}

// story tells what else is known of an entry, and which fault it was that came last. The ledger's
// lock is held.
func (l *lab) story(st *stream, id string) string {
	var b strings.Builder
	for _, d := range st.arrived[id] {
		fmt.Fprintf(&b, "%s got it %v ago, ack sent: %t, known: %t; ", d.by, time.Since(d.got), d.tried, !d.acked.IsZero())
	}
	if f := l.lately.Load(); f != nil {
		fmt.Fprintf(&b, "last fault: %s", *f)
	}
	return b.String()
}

// verify compares the ledger with all that is in the stream, once everything has been worked off.
func (st *stream) verify(entries resp.Value, t *tally) {
	st.mu.Lock()
	defer st.mu.Unlock()
	seen := make(map[string]int)
	for _, e := range entries.Elems {
		id, text := string(e.Elems[0].Text), string(e.Elems[1].Elems[1].Text)
		v, ok := st.added[text]
		switch seen[text]++; {
		case !ok:
			t.violate("P1", "%s: %s is %.60q, which nobody added", st.key, id, text)
		case v.certain():
			t.violate("P3", "%s: %s was added, and its client told %v", st.key, text, v)
		case seen[text] == 2:
			t.violate("P3", "%s: %s was added twice", st.key, text)
		}
		tried := slices.ContainsFunc(st.arrived[id], func(d delivery) bool { return d.tried })
		switch {
		case len(st.arrived[id]) == 0:
			t.violate("P6", "%s: %s was acked and nobody ever got it", st.key, id)
		case !tried:
			t.violate("P6", "%s: %s was acked, and not by those who got it", st.key, id)
		}
	}
	for text, v := range st.added {
		if v == done && seen[text] == 0 {
			t.violate("P6", "%s: %s was added and is gone", st.key, text)
		}
	}
}

// workedOff reports whether a stream's group has read everything and nothing is pending.
func (l *lab) workedOff(st *stream) bool {
	reply := l.server.Do("XINFO", "GROUPS", st.key)
	v, _, err := resp.Parse([]byte(reply))
	if err != nil || len(v.Elems) != 1 {
		return false
	}
	fields := make(map[string]string)
	list := v.Elems[0].Elems
	for i := 0; i+1 < len(list); i += 2 {
		fields[string(list[i].Text)] = string(list[i+1].Text)
	}
	last, _ := l.lastID(st)
	return fields["pending"] == "0" && fields["last-delivered-id"] == last
}

// lastID is the id of a stream's last entry.
func (l *lab) lastID(st *stream) (string, error) {
	v, _, err := resp.Parse([]byte(l.server.Do("XREVRANGE", st.key, "+", "-", "COUNT", "1")))
	if err != nil || len(v.Elems) == 0 {
		return "0-0", err
	}
	return string(v.Elems[0].Elems[0].Text), nil
}

//go:build faults

package faults

import (
	"fmt"
	"net"
	"strings"
	"time"

	"streamproxy/internal/redistest"
)

// visitor connects, asks, and leaves in one of many ways, often before the answer.
func (l *lab) visitor(id int) {
	s := l.newSession("visits", id)
	defer s.drop()
	for n := 0; s.connect(); n++ {
		var raw strings.Builder
		size := 1 + s.rnd.IntN(10)
		want := make([]string, size)
		for i := range want {
			text := fmt.Sprintf("%d:%d:%d:", id, n, i) + strings.Repeat("v", s.rnd.IntN(200))
			want[i] = bulk(text)
			raw.WriteString(redistest.Command("ECHO", text))
		}
		switch s.rnd.IntN(5) {
		case 3, 4:
			l.leaveWaiting(s)
		case 0: // in the middle of a command
			_ = s.c.Send(raw.String()[:s.rnd.IntN(raw.Len())])
		case 1: // without reading
			_ = s.c.Send(raw.String())
		default:
			verdicts := make([]verdict, size)
			for i, reply := range s.exchange(raw.String(), size, false) {
				if verdicts[i] = verdictOf(reply); verdicts[i] == done && reply != want[i] {
					l.tally.violate("P1", "%s %d: to %.60q came %.80q", s.kind, id, want[i], reply)
				}
			}
			l.tally.count(s.kind, verdicts...)
		}
		s.drop()
		l.pause(time.Duration(s.rnd.IntN(30)) * time.Millisecond)
	}
}

// farewells are what a client may have said last when it leaves: something that it would have had to
// wait for, or that its connection keeps. What the proxy does with that connection then is everybody's
// business.
var farewells = [][]string{
	{"SET visited x", "WAIT 3 0"}, {"SET visited x", "WAIT 3 5000"}, {"MULTI", "SET visited x"}, {"MULTI", "EXEC", "WAIT 3 0"},
	{"WATCH visited", "GET visited"}, {"WATCH visited", "MULTI"}, {"BLPOP nobodys 0"}, {"XREAD BLOCK 0 STREAMS nothings $"},
	{"SUBSCRIBE visits"}, {"CLIENT TRACKING ON", "GET visited"}, {"CLIENT REPLY OFF", "GET visited"}, {"CLIENT REPLY SKIP", "RESET"},
	{"NOSUCH", "SET visited x"}, {"SELECT 3", "WAIT 1 0"}, {"HELLO 3", "BLMOVE nobodys others LEFT LEFT 0"},
}

// leaveWaiting says one of them, and leaves in a moment, by a reset or in an orderly way. Some say much
// more behind it, which nobody will read before their end comes.
func (l *lab) leaveWaiting(s *session) {
	raw := ""
	for _, line := range farewells[s.rnd.IntN(len(farewells))] {
		raw += redistest.Command(strings.Fields(line)...)
	}
	if s.rnd.IntN(8) == 0 {
		raw += strings.Repeat(redistest.Command("PING"), s.rnd.IntN(100_000))
	}
	_ = s.c.Send(raw)
	l.pause(time.Duration(s.rnd.IntN(20)) * time.Millisecond)
	if tcp, ok := s.c.Conn.(*net.TCPConn); ok && s.rnd.IntN(2) == 0 {
		_ = tcp.SetLinger(0)
	}
}

// giant sets and gets values of up to 3 MB that consist of what they are.
func (l *lab) giant(id int) {
	s := l.newSession("large values", id)
	defer s.drop()
	doubt, life := false, 0 // a DEL that went down with its connection may come late
	for n := 0; s.connect(); n++ {
		if life != s.life {
			doubt, life = false, s.life
		}
		key := fmt.Sprintf("big:%d:%d", id, s.life)
		piece := fmt.Sprintf("%s:%d;", key, n)
		value := strings.Repeat(piece, 1+s.rnd.IntN(1<<s.rnd.IntN(22))/len(piece))
		replies := s.exchange(redistest.Command("SET", key, value)+redistest.Command("GET", key)+redistest.Command("DEL", key), 3, false)
		for i, reply := range replies {
			v := verdictOf(reply)
			l.tally.count(s.kind, v)
			doubt = doubt || v.doubtful()
			if v != done {
				continue
			}
			text, isText := unbulk(reply)
			if i == 1 && isText && text != value && !oldGiant(text, key) ||
				i == 1 && !isText && (reply != "$-1\r\n" || verdictOf(replies[0]) == done && !doubt && l.losses.Load() == 0) ||
				i == 0 && reply != "+OK\r\n" || i == 2 && length(reply) > 1 {
				l.tally.violate("P1", "%s %d: to command %d with %d bytes of %q came %.80q", s.kind, id, i, len(value), piece, reply)
			}
		}
		l.pause(time.Duration(s.rnd.IntN(200)) * time.Millisecond)
	}
}

// oldGiant reports whether text is a value that the client set earlier and does not know the outcome
// of: one piece, repeated.
func oldGiant(text, key string) bool {
	piece, _, ok := strings.Cut(text, ";")
	piece += ";"
	return ok && strings.HasPrefix(piece, key+":") && strings.Repeat(piece, len(text)/len(piece)) == text
}

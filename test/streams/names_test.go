//go:build streams

package streams

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// application is one kind of worker: a user, a group, what it calls its streams and its locks.
type application struct {
	user, group, consumer, lock string
	streams                     []string
}

// applications share one server and some streams. Nothing in their names is what a library would
// choose.
var applications = []application{
	{"", "work:ers", "STREAMS", "locks/{stream}/{group}", []string{"a:b:c", "{tag}:x", "plain", "both"}},
	{"ada", "{g}", "GROUP", "l:{group}{stream}", []string{"both", "STREAMS", "COUNT", "with blank"}},
	{"bob", "work:ers", ">", "autoclaim:{group}:{stream}", []string{"both", "plain", "\xff\x00\r\n", "block"}},
}

// Three applications, each with a proxy of its own: every stream of every group is probed within
// 1.25 intervals, and a dead worker's entries arrive at the one that is alive.
func TestNamesUsersAndStreamSets(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	at := direct(t, s)
	for _, user := range []string{"ada", "bob"} {
		at.gets("+OK\r\n", "ACL", "SETUSER", user, "on", ">"+user, "~*", "+@all")
	}
	ledgers := map[string]*ledger{"work:ers": newLedger(), "{g}": newLedger()}
	for _, a := range applications {
		for _, stream := range a.streams {
			at.ask("XGROUP", "CREATE", stream, a.group, "0", "MKSTREAM") // two share one
		}
		f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.Reclaim.Locks = []string{a.lock} })
		w := worker{
			group: a.group, name: a.consumer, streams: a.streams, form: locked, block: 300 * time.Millisecond,
			count: 8, ledger: ledgers[a.group], lock: a.lock, user: a.user,
		}
		w.start(t, f.addr, false)
		eventually(t, "the first passes are answered", func() bool { return f.count("local get") > 8 })
	}
	monitor := s.Client()
	monitor.Timeout = patience
	if r, err := monitor.Do("MONITOR"); r != "+OK\r\n" {
		t.Fatalf("%q, %v", r, err)
	}
	probed(t, monitor)
	_ = monitor.Close()
	dead := make(map[string][]string)
	for _, a := range applications {
		dead[a.group] = append(dead[a.group], abandon(direct(t, s), a.group, "dead", a.streams, 10)...)
	}
	for group, l := range ledgers {
		eventually(t, "all arrive", func() bool { return l.settled(dead[group]) == len(dead[group]) })
		l.exact(t, dead[group], 2)
	}
}

// probed watches the server for some intervals and fails the test if a stream that should have been
// probed was not, for longer than 1.25 intervals.
func probed(t *testing.T, monitor *redistest.Client) {
	t.Helper()
	want := make(map[string]time.Duration) // when it was probed last
	for _, a := range applications {
		for _, stream := range a.streams {
			want[quoted(stream)+" "+quoted(a.group)] = -1
		}
	}
	const limit = interval * 5 / 4
	var begin, now time.Duration
	for begin == 0 || now-begin < 5*interval {
		line, err := monitor.ReadReply()
		if err != nil {
			t.Fatal(err)
		}
		at, command, _ := strings.Cut(line, " [")
		seconds, err := strconv.ParseFloat(at[1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if now = time.Duration(seconds * float64(time.Second)); begin == 0 {
			begin = now
		}
		_, args, found := strings.Cut(command, `] "XPENDING" `)
		name, _, probe := strings.Cut(args, ` "IDLE" `)
		if last, known := want[name]; found && probe && known {
			if gap := now - max(last, begin); gap > limit {
				t.Errorf("%s was not probed for %v", name, gap)
			}
			want[name] = now
		}
	}
	for name, last := range want {
		if last < 0 || now-last > limit {
			t.Errorf("%s was not probed at the end", name)
		}
	}
}

// quoted writes an argument as MONITOR does.
func quoted(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\n':
			b.WriteString(`\n`)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}

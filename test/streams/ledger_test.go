//go:build streams

package streams

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// ledger accounts for every entry: who got it, when, as which delivery, and what became of it.
type ledger struct {
	mu       sync.Mutex
	arrivals map[string][]arrival // by entryKey
}

// arrival is one delivery of an entry to a worker.
type arrival struct {
	worker, owner string
	count         int // the server's count of deliveries, at arrival
	at            time.Time
	acked         bool // false: the ack was refused, or nothing is known of it
}

func newLedger() *ledger { return &ledger{arrivals: make(map[string][]arrival)} }

// entryKey names an entry.
func entryKey(stream, id string) string { return stream + "/" + id }

func (l *ledger) note(key string, a arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrivals[key] = append(l.arrivals[key], a)
}

// missing is how many of some entries have not arrived.
func (l *ledger) missing(keys []string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		if len(l.arrivals[k]) == 0 {
			n++
		}
	}
	return n
}

// settled is how many of some entries have been acked.
func (l *ledger) settled(keys []string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		if slices.ContainsFunc(l.arrivals[k], func(a arrival) bool { return a.acked }) {
			n++
		}
	}
	return n
}

// last is when the last of some entries arrived for the first time.
func (l *ledger) last(keys []string) (at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		if list := l.arrivals[k]; len(list) > 0 && list[0].at.After(at) {
			at = list[0].at
		}
	}
	return at
}

// exact fails the test unless every one of the entries arrived once, as the delivery with that
// number, 0 being any, and was acked.
func (l *ledger) exact(t testing.TB, keys []string, count int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	faults := make(map[string]int)
	for _, k := range keys {
		list := l.arrivals[k]
		switch {
		case len(list) != 1:
			faults[fmt.Sprint("arrived ", len(list), " times")]++
		case count > 0 && list[0].count != count:
			faults[fmt.Sprint("arrived as delivery ", list[0].count)]++
		case list[0].owner != list[0].worker:
			faults["arrived at "+list[0].worker+" and is "+list[0].owner+"'s"]++
		case !list[0].acked:
			faults["could not be acked"]++
		}
	}
	complain(t, len(keys), faults)
}

// atLeastOnce fails the test unless every one of the entries arrived, and none again after an ack
// that its worker knows of. Nothing must be pending any more: then all were acked, whether or not
// their workers could be told.
func (l *ledger) atLeastOnce(t testing.TB, keys []string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	faults := make(map[string]int)
	for _, k := range keys {
		at := slices.IndexFunc(l.arrivals[k], func(a arrival) bool { return a.acked })
		switch {
		case len(l.arrivals[k]) == 0:
			faults["never arrived"]++
		case at >= 0 && at < len(l.arrivals[k])-1:
			faults["arrived after it had been acked"]++
		}
	}
	complain(t, len(keys), faults)
}

func complain(t testing.TB, n int, faults map[string]int) {
	t.Helper()
	for _, what := range slices.Sorted(maps.Keys(faults)) {
		t.Errorf("%d of %d entries: %s", faults[what], n, what)
	}
}

// publish appends entries round the streams, numbered in their id so that no two are the same, and
// returns what they are called.
func publish(c *client, streams []string, n int) (keys []string) {
	c.t.Helper()
	var commands [][]string
	for i := range n {
		commands = append(commands, []string{"XADD", streams[i%len(streams)], "*", "f", "v"})
	}
	for i, reply := range c.all(commands...) {
		keys = append(keys, entryKey(streams[i%len(streams)], text(decode(c.t, reply))))
	}
	return keys
}

// abandon lets a consumer read n new entries and die with all of them: it appends and reads them in
// one transaction, so that no other consumer gets any. It returns what they are called.
func abandon(c *client, group, consumer string, streams []string, n int) (keys []string) {
	c.t.Helper()
	commands := [][]string{{"MULTI"}}
	for i := range n {
		commands = append(commands, []string{"XADD", streams[i%len(streams)], "*", "f", "v"})
	}
	commands = append(commands, readCommand(group, consumer, 0, -1, streams), []string{"EXEC"})
	replies := c.all(commands...)
	list := decode(c.t, replies[len(replies)-1]).Elems
	if len(list) != n+1 {
		c.t.Fatalf("the transaction was answered %.200q", replies[len(replies)-1])
	}
	for i, v := range list[:n] {
		keys = append(keys, entryKey(streams[i%len(streams)], text(v)))
	}
	reset(c.Conn)
	return keys
}

// nothingLeft waits until nothing is pending in any of the streams.
func nothingLeft(c *client, group string, streams []string) {
	c.t.Helper()
	eventually(c.t, "nothing is pending", func() bool {
		return !slices.ContainsFunc(streams, func(s string) bool { return len(c.pendings(s, group)) > 0 })
	})
}

// names makes n stream names.
func names(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s:%03d", prefix, i))
	}
	return list
}

// groups creates a group in every stream.
func groups(c *client, group string, streams []string) {
	c.t.Helper()
	for _, s := range streams {
		if r := c.ask("XGROUP", "CREATE", s, group, "0", "MKSTREAM"); !strings.HasPrefix(r, "+OK") {
			c.t.Fatalf("XGROUP CREATE %s %s: %s", s, group, r)
		}
	}
}

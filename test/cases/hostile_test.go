//go:build cases

package cases

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// steps are what a hostile client mixes. None of them depends on what others do.
var steps = [][]string{
	{"SELECT", "1"}, {"SELECT", "0"}, {"SELECT", "99999"}, {"MULTI"}, {"MULTI"}, {"EXEC"}, {"EXEC"}, {"DISCARD"}, {"WATCH", "w"}, {"UNWATCH"},
	{"SUBSCRIBE", "c"}, {"UNSUBSCRIBE", "c"}, {"PSUBSCRIBE", "p*"}, {"PUNSUBSCRIBE"}, {"SSUBSCRIBE", "s"}, {"SUNSUBSCRIBE", "s"}, {"RESET"}, {"RESET"},
	{"AUTH", "alice", "alice-1"}, {"AUTH", "alice", "wrong"}, {"AUTH", "default", "x"}, {"HELLO", "3"}, {"HELLO", "2"}, {"HELLO", "4"},
	{"HELLO", "3", "AUTH", "alice", "alice-1"}, {"SET", "alice:k", "v"}, {"GET", "alice:k"}, {"DEL", "alice:k"}, {"HGETALL", "alice:none"},
	{"ACL", "WHOAMI"}, {"BLPOP", "alice:none", "0.001"}, {"XREAD", "BLOCK", "1", "STREAMS", "alice:s", "$"}, {"PING"},
	{"PING", "x"}, {"ECHO", "e"}, {"NOSUCH"}, {"GET"}, {"SET", "alice:k", strings.Repeat("x", 70_000)},
	{"EVAL", "return redis.call('GET', KEYS[1])", "1", "alice:k"}, {"CLIENT", "TRACKING", "OFF"}, {"CLIENT", "NO-EVICT", "OFF"},
	{"QUIT"},
}

// sequence draws a client's life and how it is cut into writes.
func sequence(r *rand.Rand) (commands [][]string, writes []string) {
	for range 2 + r.IntN(24) {
		commands = append(commands, steps[r.IntN(len(steps)-1)])
	}
	commands = append(commands, []string{"QUIT"})
	text := pipeline(commands...)
	for len(text) > 0 {
		n := min(len(text), 1+r.IntN(len(text)))
		if r.IntN(3) == 0 {
			n = len(text)
		}
		writes = append(writes, text[:n])
		text = text[n:]
	}
	return commands, writes
}

// hear plays the writes and returns everything that comes back.
func hear(addr string, writes []string) (string, error) {
	c, err := redistest.Dial(addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	sent := make(chan struct{})
	go func() { // ends with the writes, or the connection
		defer close(sent)
		for _, w := range writes {
			if c.Send(w) != nil {
				return
			}
		}
	}()
	defer func() { <-sent }()
	var b strings.Builder
	for {
		got, err := c.ReadReply()
		b.WriteString(got)
		if isTimeout(err) {
			return b.String(), err
		}
		if err != nil {
			return b.String(), nil
		}
	}
}

// Whatever a client mixes in its pipelines, it hears what the server itself would have said, and a
// neighbour notices nothing. Each side has a server of its own, so that both start from the same.
// WAIT is not among the steps: RESET closes connections whose last write it might ask about.
func TestHostileOrdersAgainstTheServer(t *testing.T) {
	t.Parallel()
	s, twin := aclServer(t), aclServer(t)
	f := startProxy(t, s.Addr())
	neighbour := f.client()
	seed := uint64(1)
	if text := os.Getenv("CASES_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range 250 {
		commands, writes := sequence(r)
		got, err := hear(f.tcp, writes)
		if err != nil {
			t.Fatalf("round %d: the proxy hangs: %v\n%.2000q\nheard %.2000q", round, err, commands, got)
		}
		want, err := hear(twin.Addr(), writes)
		if err != nil {
			t.Fatalf("round %d: the server hangs: %v", round, err)
		}
		if got, want = withoutIDs(got), withoutIDs(want); got != want {
			from := differ(got, want)
			t.Fatalf("round %d:\n%.60q\n got ...%.400q\nwant ...%.400q", round, commands, got[from:], want[from:])
		}
		if round%20 == 0 {
			unaffected(t, neighbour, fmt.Sprint("round", round))
		}
	}
	eventually(t, "nothing is left behind", func() bool { st := f.Stats(); return st.Clients == 1 && st.PrivateBusy == 0 })
}

// differ is where two texts part, less a little for the eye.
func differ(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return max(0, n-100)
}

// withoutIDs cuts every id out of the replies to HELLO.
func withoutIDs(text string) string {
	for strings.Contains(text, "$2\r\nid\r\n:") {
		text = withoutID(text)
	}
	return text
}

// Clients reset their connections, and the server's are killed, at any step of such lives. Nobody
// hangs, nobody else's reply is heard, nothing is left behind.
func TestHostileOrdersWithLosses(t *testing.T) {
	t.Parallel()
	s := aclServer(t)
	f := startProxy(t, s.Addr(), func(c *proxy.Config) { c.UpstreamWait = 5 * time.Second })
	stop := make(chan struct{})
	var killer, clients sync.WaitGroup
	killer.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
				s.Do("CLIENT", "KILL", "TYPE", []string{"normal", "pubsub"}[rand.IntN(2)])
			case <-stop:
				tick.Stop()
				return
			}
		}
	})
	for id := range 8 {
		clients.Go(func() {
			for round := range 60 {
				r := rand.New(rand.NewPCG(uint64(id), uint64(round)))
				_, writes := sequence(r)
				mark := fmt.Sprintf("mine-%d-%d", id, round)
				writes = append([]string{redistest.Command("ECHO", mark)}, writes...)
				if round%3 == 0 {
					leaveWithin(f.tcp, strings.Join(writes, ""), r)
					continue
				}
				got, err := hear(f.tcp, writes)
				if err != nil {
					t.Errorf("client %d, round %d hangs: %v\n%.2000q\nheard %.2000q", id, round, err, writes, got)
				}
				if strings.Count(got, "mine-") != strings.Count(got, mark) {
					t.Errorf("client %d, round %d heard of others: %.1000q", id, round, got)
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	killer.Wait()
	eventually(t, "nothing is left behind", func() bool { st := f.Stats(); return st.Clients == 0 && st.PrivateBusy == 0 })
	last := f.client()
	eventually(t, "the proxy serves", func() bool { return last.ask("PING") == "+PONG\r\n" })
	unaffected(t, last, "losses")
}

// leaveWithin sends a part of a life and resets the connection, having heard a little or nothing.
func leaveWithin(addr, text string, r *rand.Rand) {
	c, err := redistest.Dial(addr)
	if err != nil {
		return
	}
	_ = c.Send(text[:r.IntN(len(text))]) // the killer may have been faster
	c.Timeout = time.Duration(r.IntN(5)) * time.Millisecond
	if c.Timeout > 0 {
		_, _ = c.ReadReply() // whatever comes in that time
	}
	reset(c.Conn)
}

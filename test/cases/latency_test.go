//go:build cases

package cases

import (
	"slices"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// sample asks n times and returns the times that took, sorted.
func sample(t *testing.T, c *client, n int, want string, args ...string) []time.Duration {
	t.Helper()
	took := make([]time.Duration, n)
	for i := range took {
		start := time.Now()
		c.gets(want, args...)
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took
}

// percentile of sorted samples; 1 is the slowest.
func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[min(int(float64(len(sorted))*p), len(sorted)-1)]
}

// unharmed compares a neighbour's PINGs with those of a client at the server itself, in turn and at
// the same moment, so that what the machine does hits both: p99 at most 1.5 times the direct one
// and 2 ms. The best of a few windows counts; whatever really stands in the way stands in all of them.
func unharmed(t *testing.T, neighbour, direct *client) {
	t.Helper()
	var through, past time.Duration
	for range 10 {
		var viaProxy, viaNothing []time.Duration
		for range 20 {
			viaNothing = append(viaNothing, sample(t, direct, 10, "+PONG\r\n", "PING")...)
			viaProxy = append(viaProxy, sample(t, neighbour, 10, "+PONG\r\n", "PING")...)
		}
		slices.Sort(viaProxy)
		slices.Sort(viaNothing)
		through, past = percentile(viaProxy, 0.99), percentile(viaNothing, 0.99)
		if through <= past*3/2+2*time.Millisecond {
			return
		}
	}
	t.Errorf("the neighbour's p99 is %v, directly it is %v", through, past)
}

// Blocking commands that nobody had listed stood in everybody's way. While one client is blocked in
// each of them, a neighbour notices nothing; when the client resets, the server's blocked client
// goes with it.
func TestCase17BlockingCommands(t *testing.T) {
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	neighbour, direct, watch := f.client(), connect(t, s.Addr()), &client{s.Client(), t}
	unharmed(t, neighbour, direct)
	for _, args := range [][]string{
		{"BLMOVE", "a", "b", "LEFT", "RIGHT", "0"},
		{"BLMPOP", "0", "1", "a", "LEFT"},
		{"BZMPOP", "0", "1", "a", "MIN"},
		{"BRPOPLPUSH", "a", "b", "0"},
		{"BZPOPMAX", "a", "0"},
		{"XREAD", "Block", "0", "STREAMS", "s", "$"},
		{"WAIT", "1", "0"},
		{"WAITAOF", "0", "1", "0"},
	} {
		if args[0] == "WAITAOF" && strings.HasSuffix(watch.ask("COMMAND", "INFO", "WAITAOF"), "-1\r\n") {
			t.Log("this server knows no WAITAOF")
			continue
		}
		c := f.client()
		c.sends(redistest.Command(args...))
		blockedClients(t, watch, "1")
		unharmed(t, neighbour, direct)
		reset(c.Conn)
		blockedClients(t, watch, "0")
	}
}

// What stops the whole server stops everybody, but no reply is mixed and no connection given up.
func TestCase17WholeServerStopped(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--enable-debug-command", "yes"))
	f := startProxy(t, s.Addr())
	a, b := f.client(), f.client()
	a.gets("+OK\r\n", "SET", "k", "v")
	b.gets(bulk("v"), "GET", "k")
	stopper := f.client()
	stopper.gets("+OK\r\n", "CLIENT", "PAUSE", "1", "ALL") // has its connection from now on
	for _, args := range [][]string{{"CLIENT", "PAUSE", "300", "ALL"}, {"DEBUG", "SLEEP", "0.3"}} {
		before := s.Do("CLIENT", "LIST", "TYPE", "NORMAL")
		stopper.sends(redistest.Command(args...))
		for range 5 {
			a.sends(redistest.Command("ECHO", "a1") + redistest.Command("SET", "k", "v") + redistest.Command("ECHO", "a2"))
			b.sends(redistest.Command("ECHO", "b1") + redistest.Command("GET", "k"))
			a.replies(bulk("a1"), "+OK\r\n", bulk("a2"))
			b.replies(bulk("b1"), bulk("v"))
		}
		stopper.replies("+OK\r\n")
		lane := f.Stats().Lanes
		if lane != 2 { // with that of newcomers
			t.Errorf("%v: %d lanes, want 2", args, lane)
		}
		if gone := lost(before, s.Do("CLIENT", "LIST", "TYPE", "NORMAL")); len(gone) > 0 {
			t.Errorf("%v: connections were given up: %q", args, gone)
		}
	}
}

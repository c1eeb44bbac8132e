//go:build operations

package operations

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"streamproxy/internal/proxytest"
	"streamproxy/internal/redistest"
)

// The errors by which a client learns what became of a command that was not answered.
const (
	unknown  = "-ERR streamproxy: upstream connection lost; outcome unknown\r\n"
	notSent  = "-ERR streamproxy: upstream unavailable; command not sent\r\n"
	stopping = "-ERR streamproxy: shutting down; command not sent\r\n"
)

// long reports whether tests run at full size.
func long() bool { return os.Getenv("CASES_LONG") == "1" }

// counter is a client that increments a key of its own, and the book it keeps: the key's value
// must be what the replies say.
type counter struct {
	key                 string
	done, refused, lost int
	bad                 []string // replies that are neither a number nor one of the errors
	failed              error    // the end of the connection
}

// run counts until stop is closed or the connection ends.
func (c *counter) run(addr string, stop <-chan struct{}) {
	var conn *redistest.Client
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		if n%100 == 0 { // an application that is stopping opens connections, too
			if conn != nil {
				_ = conn.Close()
			}
			if conn, c.failed = redistest.Dial(addr); c.failed != nil {
				return
			}
		}
		reply, err := conn.Do("INCR", c.key)
		if err != nil {
			c.lost++
			c.failed = err
			return
		}
		c.book(reply)
	}
}

func (c *counter) book(reply string) {
	switch {
	case strings.HasPrefix(reply, ":"):
		c.done++
	case reply == stopping, reply == notSent:
		c.refused++
	case reply == unknown:
		c.lost++
	default:
		c.bad = append(c.bad, reply)
	}
}

// check compares the book with the server's.
func (c *counter) check(t *testing.T, server *redistest.Server) {
	t.Helper()
	got := server.Do("GET", c.key)
	_, digits, _ := strings.Cut(strings.TrimSpace(got), "\r\n")
	value, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatalf("%s: %q", c.key, got)
	}
	if value < c.done || value > c.done+c.lost || len(c.bad) > 0 {
		t.Errorf("%s is %d: %d were answered, %d refused, %d lost; odd replies %q", c.key, value, c.done, c.refused, c.lost, c.bad)
	}
}

// startLoad runs n counters; stop ends them and waits.
func startLoad(p *proxytest.Process, n int) (counters []*counter, stop func()) {
	ending := make(chan struct{})
	var running sync.WaitGroup
	for i := range n {
		c := &counter{key: "counter:" + strconv.Itoa(i)}
		counters = append(counters, c)
		running.Go(func() { c.run(p.Addr, ending) })
	}
	var once sync.Once
	return counters, func() {
		once.Do(func() { close(ending) })
		running.Wait()
	}
}

// book is how much the counters did.
func book(counters []*counter) (done, refused, lost int) {
	for _, c := range counters {
		done, refused, lost = done+c.done, refused+c.refused, lost+c.lost
	}
	return done, refused, lost
}

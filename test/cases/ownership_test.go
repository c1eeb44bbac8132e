//go:build cases

package cases

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// owners is how many clients ask for what is theirs alone.
const owners = 500

// verdicts counts what the owners were told.
type verdicts struct {
	own, errors, closed atomic.Int64
}

// owner asks for its own key, over a connection that it makes anew when that is closed or when
// it resets it itself, until stop. A reply that is neither its own value nor an error fails the
// test, and so does a silence.
func owner(t *testing.T, addr string, id int, v *verdicts, stop <-chan struct{}, round func(c *redistest.Client, id int) error) {
	var c *redistest.Client
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	for {
		select {
		case <-stop:
			return
		default:
		}
		if c == nil {
			var err error
			if c, err = redistest.Dial(addr); err != nil {
				t.Errorf("client %d: connect: %v", id, err)
				return
			}
		}
		err := round(c, id)
		var refused refusal
		switch {
		case err == nil:
			v.own.Add(1)
		case errors.As(err, &refused):
			v.errors.Add(1)
		case errors.Is(err, errStranger), isTimeout(err):
			t.Errorf("client %d: %v", id, err)
			return
		default:
			v.closed.Add(1)
			_ = c.Close()
			c = nil
		}
		if c != nil && rand.IntN(50) == 0 {
			reset(c.Conn)
			c = nil
		}
	}
}

// errStranger is a reply that is not the client's own.
var errStranger = errors.New("a reply that belongs to somebody else")

// refusal is an error that a client may get while things break.
type refusal string

func (r refusal) Error() string { return string(r) }

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// own judges one reply: nil if ok, a refusal, or errStranger.
func own(reply string, ok bool) error {
	switch {
	case ok:
		return nil
	case reply == unknownOutcome, reply == notSent, strings.HasPrefix(reply, "-LOADING "):
		return refusal(reply)
	}
	return fmt.Errorf("%w: %.80q", errStranger, reply)
}

// served waits until n more replies have come than had at the call, so that a busy machine gets
// something done between two faults; it does not wait for ever, and who counts in the end sees that.
func (v *verdicts) served(n int64) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	want := v.own.Load() + n
	for deadline := time.Now().Add(patience); v.own.Load() < want && time.Now().Before(deadline); <-tick.C {
	}
}

// runOwners lets every owner go round while breakThings runs, and returns what they were told.
func runOwners(t *testing.T, f *front, round func(c *redistest.Client, id int) error, breakThings func(*verdicts)) *verdicts {
	t.Helper()
	v := &verdicts{}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for id := range owners {
		addr := f.tcp
		if id%2 == 1 {
			addr = f.unix
		}
		wg.Go(func() { owner(t, addr, id, v, stop, round) })
	}
	breakThings(v)
	close(stop)
	wg.Wait()
	t.Logf("%d replies of one's own, %d errors, %d connections closed", v.own.Load(), v.errors.Load(), v.closed.Load())
	return v
}

// A proxy's own keep-alive gave its PONG to a client. Here every lane that is dialled is greeted
// with a PING of the proxy's, and each loss of a lane has the health check send another; lanes are
// killed every ten milliseconds under 500 clients, and nobody may ever see a PONG.
func TestCase03KeepAlivePong(t *testing.T) {
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	for id := range owners {
		s.Do("SET", "k"+strconv.Itoa(id), self(id))
	}
	killer := &client{s.Client(), t}
	killer.ask("CONFIG", "RESETSTAT")
	v := runOwners(t, f, func(c *redistest.Client, id int) error {
		reply, err := c.Do("GET", "k"+strconv.Itoa(id))
		if err != nil {
			return err
		}
		return own(reply, reply == bulk(self(id)))
	}, func(v *verdicts) {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range 150 {
			killer.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			v.served(owners / 100)
			<-tick.C
		}
	})
	if v.own.Load() < owners {
		t.Errorf("only %d replies arrived", v.own.Load())
	}
	_, pings, _ := strings.Cut(killer.ask("INFO", "commandstats"), "cmdstat_ping:calls=")
	pings, _, _ = strings.Cut(pings, ",")
	if n, _ := strconv.Atoi(pings); n < 20 {
		t.Errorf("the proxy sent %q PINGs, too few to prove anything", pings)
	}
}

// self is a value that says whose it is.
func self(id int) string { return "k" + strconv.Itoa(id) + ":it is mine" }

// Ownership: whatever breaks, whenever, a client gets what is its own or an error. The link to the
// server is reset, stalled past the deadline and cut within a reply, the server is stopped and
// restarted, and clients reset their connections, all under load.
func TestCase04Ownership(t *testing.T) {
	s := redistest.Start(t)
	link := startLink(t, s.Addr())
	f := startProxy(t, link.Addr(), func(c *proxy.Config) {
		c.UpstreamTimeout = 200 * time.Millisecond
		c.DialTimeout = 200 * time.Millisecond
	})
	v := runOwners(t, f, ownRound, func(v *verdicts) { breakUpstream(s, link); v.served(owners) })
	if v.own.Load() < owners || v.errors.Load() == 0 {
		t.Error("too little was served, or nothing broke: this proves nothing")
	}
	f.client().gets("+PONG\r\n", "PING")
}

// ownRound sets and gets in one write. The value may be gone, after a restart, but if there is
// one it is this client's.
func ownRound(c *redistest.Client, id int) error {
	key := "k" + strconv.Itoa(id)
	value := key + ":" + strings.Repeat("x", rand.IntN(2000))
	if err := c.Send(redistest.Command("SET", key, value) + redistest.Command("GET", key)); err != nil {
		return err
	}
	set, err := c.ReadReply()
	if err != nil {
		return err
	}
	verdict := own(set, set == "+OK\r\n")
	got, err := c.ReadReply()
	if err != nil {
		return err
	}
	_, text, _ := strings.Cut(got, "\r\n")
	mine := got == "$-1\r\n" || strings.HasPrefix(text, key+":")
	if verdict == nil {
		mine = mine && (got == bulk(value) || got == "$-1\r\n")
	}
	return errors.Join(verdict, own(got, mine))
}

// breakUpstream plays one fault after the other.
func breakUpstream(s *redistest.Server, link *netlab.Link) {
	pause := func(d time.Duration) { <-time.After(d) }
	for range 3 {
		pause(150 * time.Millisecond)
		link.Reset()
		pause(150 * time.Millisecond)
		link.CutAfter(netlab.ToClient, int64(10_000+rand.IntN(10_000)))
		pause(150 * time.Millisecond)
		link.CutAfter(netlab.ToUpstream, int64(10_000+rand.IntN(10_000)))
		pause(150 * time.Millisecond)
		link.Stall(netlab.ToClient)
		pause(300 * time.Millisecond)
		link.Resume(netlab.ToClient)
		pause(150 * time.Millisecond)
		s.Stop()
		pause(300 * time.Millisecond)
		s.Cont()
	}
	pause(150 * time.Millisecond)
	s.Restart()
	pause(500 * time.Millisecond)
}

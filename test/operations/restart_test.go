//go:build operations

package operations

import (
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"streamproxy/internal/proxytest"
	"streamproxy/internal/redistest"
)

// caller is a client without state at the server that goes on through everything, over one
// connection, at a pace.
type caller struct {
	conn      *redistest.Client
	recovered atomic.Int64 // when the first good reply after a refusal came, unix nanoseconds
	refused   atomic.Int64 // replies that say that a command was not executed, or perhaps not
	closed    atomic.Bool  // it has ended, other than by stop
	failed    error        // why, once its goroutine is over
}

// pace is how long a caller rests after each reply.
const pace = 50 * time.Millisecond

func (c *caller) call(stop <-chan struct{}) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	defer func() { c.closed.Store(c.failed != nil) }()
	for down := false; ; {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		got, err := c.conn.Do("GET", "k")
		switch {
		case err != nil:
			c.failed = err
			return
		case got == "$-1\r\n":
			if down {
				c.recovered.Store(time.Now().UnixNano())
			}
			down = false
		case got == notSent, got == unknown:
			down = true
			c.refused.Add(1)
		default:
			c.failed = errors.New(got)
			return
		}
	}
}

// The server dies under 200 clients and comes back. Meanwhile it is dialled a few times a second and
// the proxy idles. No client without state at the server is closed; who had some is, because a
// client that went on would not know what is forgotten; a blocked pop is told that its outcome is
// unknown, and a blocked read of a stream goes on waiting.
func TestRestartUnderManyClients(t *testing.T) {
	server := redistest.Start(t, redistest.WithArgs("--appendonly", "yes", "--appendfsync", "always"))
	server.Do("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
	d := openDoor(t, server.Addr())
	p := proxytest.Start(t, "redis://"+d.addr).Ready()

	var callers [160]caller
	var reading [20]*redistest.Client
	var popping, subscribed, watching [10]*redistest.Client
	for i := range callers {
		callers[i].conn = p.Client()
	}
	for i := range reading {
		reading[i] = p.Client()
		if err := reading[i].SendCommand("XREADGROUP", "GROUP", "g", "w"+strconv.Itoa(i), "BLOCK", "0", "STREAMS", "s", ">"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range popping {
		popping[i], subscribed[i], watching[i] = p.Client(), p.Client(), p.Client()
		expect(t, subscribed[i], "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "SUBSCRIBE", "c")
		expect(t, watching[i], "+OK\r\n", "WATCH", "k")
		if err := popping[i].SendCommand("BLPOP", "l", "0"); err != nil {
			t.Fatal(err)
		}
	}
	proxytest.Eventually(t, "30 blocked clients", func() bool { return server.Info("clients", "blocked_clients") == "30" })
	stop := make(chan struct{})
	var calling sync.WaitGroup
	defer calling.Wait()
	ended := sync.OnceFunc(func() { close(stop) })
	defer ended()
	for i := range callers {
		calling.Go(func() { callers[i].call(stop) })
	}
	wait(time.Second)
	calm := useOf(t, p, time.Second)

	away := 4 * time.Second
	if long() {
		away = 20 * time.Second
	}
	died := time.Now()
	d.close()
	server.Kill()
	wait(time.Second) // the first attempts are quick ones
	down := useOf(t, p, away-time.Second)
	dials := float64(d.between(died.Add(time.Second), time.Now())) / (away - time.Second).Seconds()
	server.Restart()
	back := d.open()

	proxytest.Eventually(t, "a good reply for every caller", func() bool {
		for i := range callers {
			if callers[i].recovered.Load() < back.UnixNano() && !callers[i].closed.Load() {
				return false
			}
		}
		return true
	})
	ended()
	calling.Wait()
	first, last, refused := time.Hour, time.Duration(0), int64(0)
	for i := range callers {
		c := &callers[i]
		if c.failed != nil {
			t.Errorf("a client without state at the server was closed: %v", c.failed)
		}
		refused += c.refused.Load()
		first = min(first, time.Unix(0, c.recovered.Load()).Sub(back))
		last = max(last, time.Unix(0, c.recovered.Load()).Sub(back))
	}
	t.Logf("calm: %.1f %% of a core; away: %.1f %%, %.1f dials a second, %d commands refused", 100*calm, 100*down, dials, refused)
	t.Logf("first good reply %v after it was back, the last client's %v", first.Round(time.Millisecond), last.Round(time.Millisecond))
	if first > 5*time.Second { // 1 s is the goal, for a machine that has nothing else to do
		t.Errorf("the first good reply came %v after the server was back", first)
	}
	if dials > 10 || dials == 0 {
		t.Errorf("%.1f dials a second while the server is away", dials)
	}
	if down > 0.25 { // 0.05 is the goal, for a machine that has nothing else to do
		t.Errorf("%.0f %% of a core while the server is away", 100*down)
	}

	for i, c := range popping {
		if got, err := c.ReadReply(); err != nil || got != unknown {
			t.Errorf("a blocked pop got %q, %v", got, err)
		}
		expect(t, c, "+PONG\r\n", "PING")
		for _, c := range []*redistest.Client{subscribed[i], watching[i]} {
			if got, err := c.ReadReply(); got != "" || !errors.Is(err, io.EOF) {
				t.Errorf("a client with state at the server got %q, %v; want the end", got, err)
			}
		}
	}
	proxytest.Eventually(t, "the reads wait again", func() bool { return server.Info("clients", "blocked_clients") == "20" })
	for range reading {
		server.Do("XADD", "s", "*", "n", "1")
	}
	for _, c := range reading {
		if got, err := c.ReadReply(); err != nil || len(entryIDs(got)) != 1 {
			t.Errorf("a blocked read got %q, %v", got, err)
		}
	}
}

// useOf is the share of a core that the proxy uses in a stretch of time.
func useOf(t *testing.T, p *proxytest.Process, stretch time.Duration) float64 {
	t.Helper()
	read := func() time.Duration {
		used, err := redistest.ProcessCPU(p.Pid())
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	before, began := read(), time.Now()
	wait(stretch)
	return (read() - before).Seconds() / time.Since(began).Seconds()
}

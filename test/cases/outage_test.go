//go:build cases

package cases

import (
	"os"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// A replica without its master answers, but serves nothing: readiness waits, in the server's own
// words, and clients hear them too. It is ready when the replica is a master itself.
func TestCase41MasterDown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do("CONFIG", "SET", "replica-serve-stale-data", "no")
	s.Do("REPLICAOF", "127.0.0.1", "1")
	f := startProxy(t, s.Addr())
	waitsFor(t, f, "MASTERDOWN")
	if got := f.client().ask("GET", "k"); !strings.HasPrefix(got, "-MASTERDOWN ") {
		t.Errorf("a client got %q", got)
	}
	s.Do("REPLICAOF", "NO", "ONE")
	eventually(t, "the proxy is ready", func() bool { return f.Stats().UpstreamUp })
	f.client().gets("$-1\r\n", "GET", "k")
}

// A server that loads its data answers nothing else than that it loads.
func TestCase41Loading(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"))
	s.Do("EVAL", "for i = 1, 20000 do redis.call('SET', i, i) end", "0")
	s.Do("SAVE")
	loaded := make(chan struct{})
	go func() { // ends when the server has loaded, or is killed with the test
		defer close(loaded)
		s.Restart()
	}()
	defer func() { <-loaded }()
	eventually(t, "the server loads", func() bool {
		c, err := redistest.Dial(s.Addr())
		if err != nil {
			return false
		}
		defer c.Close()
		got, err := c.Do("PING")
		return err == nil && strings.HasPrefix(got, "-LOADING ")
	})
	f := startProxy(t, s.Addr())
	waitsFor(t, f, "LOADING")
	if got := f.client().ask("GET", "1"); !strings.HasPrefix(got, "-LOADING ") {
		t.Errorf("a client got %q", got)
	}
	s.Do("CONFIG", "SET", "key-load-delay", "0")
	eventually(t, "the proxy is ready", func() bool { return f.Stats().UpstreamUp })
	f.client().gets(bulk("1"), "GET", "1")
}

// waitsFor waits until the proxy knows that its upstream asks for patience, and fails the test if
// it counts as ready before.
func waitsFor(t *testing.T, f *front, code string) {
	t.Helper()
	eventually(t, "the proxy says "+code, func() bool {
		st := f.Stats()
		if st.UpstreamUp {
			t.Fatal("the proxy counts as ready")
		}
		return strings.Contains(st.UpstreamNotReady, code)
	})
}

// The busy loop of a proxy whose upstream has vanished: its processor time stays that of an idle
// one, with nothing to do and with clients that keep every queue full, whether the address refuses
// or swallows.
func TestCase45NoBusyLoop(t *testing.T) {
	for _, vanish := range []struct {
		name string
		how  func(*netlab.Link)
	}{
		{"refused", func(l *netlab.Link) { _ = l.Refuse(); l.Reset() }},
		{"swallowed", func(l *netlab.Link) { l.Drop(netlab.ToUpstream, true); l.Drop(netlab.ToClient, true) }},
	} {
		for _, full := range []bool{false, true} {
			t.Run(map[bool]string{false: "idle ", true: "full "}[full]+vanish.name, func(t *testing.T) {
				s := redistest.Start(t)
				link := startLink(t, s.Addr())
				f := startProxy(t, link.Addr(), func(c *proxy.Config) { c.UpstreamWait = time.Minute })
				f.client().gets("+PONG\r\n", "PING")
				vanish.how(link)
				if full {
					for range 4 {
						go flood(f.client().Client) // ends with the connection
					}
				}
				<-time.After(200 * time.Millisecond) // the first attempts are quick ones
				before := ownCPU(t)
				<-time.After(time.Second)
				used := ownCPU(t) - before
				t.Logf("%v of processor time in one second", used)
				if used > 250*time.Millisecond {
					t.Errorf("%v of processor time in one second, with no upstream", used)
				}
			})
		}
	}
}

// flood sends without reading until the connection takes no more for ever.
func flood(c *redistest.Client) {
	c.Timeout = 0
	pipeline := strings.Repeat(redistest.Command("GET", "k"), 1000)
	for c.Send(pipeline) == nil {
		continue
	}
}

func ownCPU(t *testing.T) time.Duration {
	t.Helper()
	used, err := redistest.ProcessCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// While the master is down PING tells the truth, at once and for as long as it is, and the attempts
// to reach it become rare: they are counted at an address that accepts and closes.
func TestCase46PingTellsTheTruth(t *testing.T) {
	t.Parallel()
	u := startFake(t)
	f := startProxy(t, u.addr, func(c *proxy.Config) { c.UpstreamWait = 100 * time.Millisecond })
	first := f.client()
	eventually(t, "the proxy is ready", func() bool { return f.Stats().UpstreamUp })
	u.hangUp()
	eventually(t, "PING says that the server is gone", func() bool { return first.ask("ECHO", "x") == notSent })
	before, start := u.dialled(), time.Now()
	pings := 0
	for time.Since(start) < 2*time.Second {
		for _, c := range []*client{first, f.client()} {
			if got := c.ask("PING"); got != notSent {
				t.Fatalf("PING got %q while the server is down", got)
			}
			pings++
		}
	}
	dials := u.dialled() - before
	t.Logf("%d PINGs, %d attempts to connect in %v", pings, dials, time.Since(start))
	if dials > 60 {
		t.Errorf("%d attempts to connect in two seconds", dials)
	}
	// A check that began before the end may be answered after it; the next one is not.
	eventually(t, "the proxy counts as not ready", func() bool { return !f.Stats().UpstreamUp })
}

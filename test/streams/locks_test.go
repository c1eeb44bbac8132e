//go:build streams

package streams

import (
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

const lockOf = "autoclaim:g:"

// loadRelease loads the script by which workers release a lock.
func (c *client) loadRelease() (sha string) {
	c.t.Helper()
	return text(c.value("SCRIPT", "LOAD", releaseScript))
}

// A lock without a lifetime, whose holder was killed, stops every worker of the old form for good.
// Not here: what its stream has to give arrives.
func TestCase47LockOfADeadHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	c := direct(t, s)
	list := names("s", 3)
	groups(c, "g", list)
	c.gets("+OK\r\n", "SET", lockOf+list[1], "of a dead worker")
	l := newLedger()
	worker{group: "g", name: "live", streams: list, form: locked, block: 200 * time.Millisecond, count: 8, ledger: l}.start(t, f.addr, false)
	f.client().state(list[1], "g", "cold")
	dead := abandon(f.client(), "g", "dead", list, 30)
	took := within(t, bound(200*time.Millisecond)+slack, "all arrive", func() bool { return l.settled(dead) == len(dead) })
	t.Logf("took %v", took)
	l.exact(t, dead, 2)
	c.gets(bulk("of a dead worker"), "GET", lockOf+list[1]) // it is nobody's business here
}

// A lock is granted here, its stream becomes hot, and then it is released: it is still its holder's.
func TestCase63HotBetweenLockAndRelease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	at, c, watch := direct(t, s), f.client(), f.client()
	groups(at, "g", []string{"s"})
	c.learn("g", "c", minIdleMillis, "s")
	sha := c.loadRelease()
	c.gets("+OK\r\n", "SET", lockOf+"s", "token", "NX", "PX", "60000")
	deliver(at, "s", "g", "dead", time.Hour, "1-1")
	watch.state("s", "g", "hot")
	c.gets("*3\r\n"+bulk("0-0")+entries("1-1")+"*0\r\n", claimCommand("s", "g", "c", minIdleMillis, "10")...)
	c.gets(":1\r\n", "EVALSHA", sha, "1", lockOf+"s", "token")
	c.gets(":0\r\n", "EVALSHA", sha, "1", lockOf+"s", "token")
	at.gets("$-1\r\n", "GET", lockOf+"s")
}

// The other way round: the lock was taken at the server before anything was known of the stream.
func TestLockTakenBeforeItsStreamWasKnown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	at, c := direct(t, s), f.client()
	groups(at, "g", []string{"s"})
	sha := c.loadRelease()
	c.gets("+OK\r\n", "SET", lockOf+"s", "token", "NX", "PX", "60000")
	at.gets(bulk("token"), "GET", lockOf+"s")
	c.learn("g", "c", minIdleMillis, "s")
	c.gets(":1\r\n", "EVALSHA", sha, "1", lockOf+"s", "token")
	at.gets("$-1\r\n", "GET", lockOf+"s")
}

// A worker is busy with one task for longer than min-idle, on an idle queue. Its blocked read does
// not bring it the same task again; its own asking does, as at the server.
func TestCase64OwnTask(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	at, reader, other := direct(t, s), f.client(), f.client()
	groups(at, "g", []string{"s"})
	reader.learn("g", "c", minIdleMillis, "s")
	deliver(at, "s", "g", "c", time.Hour, "1-1")
	reader.state("s", "g", "hot")
	for _, block := range []time.Duration{4 * time.Second, time.Second} {
		reader.gets(nothingRead, readCommand("g", "c", 10, block, []string{"s"})...)
		if p := at.pendings("s", "g")[0]; p.count != 1 || p.idle < time.Hour {
			t.Fatalf("its own task was delivered again: %+v", p)
		}
	}
	// Somebody else's is another matter, though it stands behind.
	deliver(at, "s", "g", "dead", time.Hour, "2-1")
	reader.gets("*1\r\n*2\r\n"+bulk("s")+entries("2-1"), readCommand("g", "c", 10, 4*time.Second, []string{"s"})...)
	reader.gets(":1\r\n", "XACK", "s", "g", "2-1")
	other.gets("*3\r\n"+bulk("0-0")+entries("1-1")+"*0\r\n", claimCommand("s", "g", "c", minIdleMillis, "10")...)
}

// A task takes longer than min-idle. Directly, it is redelivered once in each min-idle to whoever
// asks; through the proxy no more often, and never before it was idle for so long.
func TestCase48WorkLongerThanMinIdle(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	at, c, other := direct(t, s), f.client(), f.client()
	groups(at, "g", []string{"s"})
	c.learn("g", "c", minIdleMillis, "s")
	other.learn("g", "other", minIdleMillis, "s")
	publish(c, []string{"s"}, 1)
	other.ask(readCommand("g", "other", 10, -1, []string{"s"})...)
	begin, last, got := time.Now(), time.Now(), 0
	for time.Since(begin) < 7*time.Second {
		for _, x := range []*client{c, other} {
			name := map[*client]string{c: "c", other: "other"}[x]
			if v := x.value(claimCommand("s", "g", name, minIdleMillis, "10")...); len(v.Elems[1].Elems) > 0 {
				if d := time.Since(last); d < minIdle-50*time.Millisecond {
					t.Errorf("delivered again after %v", d)
				}
				last, got = time.Now(), got+1
			}
		}
		<-time.After(5 * time.Millisecond)
	}
	if got < 1 || got > 3 {
		t.Errorf("delivered again %d times in 7 s", got)
	}
	if p := at.pendings("s", "g")[0]; p.count != got+1 {
		t.Errorf("the server counts %+v", p)
	}
}

// Below the shortest min-idle that is served here, everything is the server's business.
func TestShortMinIdlePasses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	at, c := direct(t, s), f.client()
	groups(at, "g", []string{"s"})
	c.gets(nothingRead, readCommand("g", "c", 10, -1, []string{"s"})...)
	for range 3 {
		c.gets(nothingClaimed, claimCommand("s", "g", "c", "1999", "10")...)
	}
	deliver(at, "s", "g", "dead", 1999*time.Millisecond, "1-1")
	c.gets("*3\r\n"+bulk("0-0")+entries("1-1")+"*0\r\n", claimCommand("s", "g", "c", "1999", "10")...)
	if n := f.count("forwarded min_idle"); n != 4 {
		t.Errorf("%d of 4 were forwarded", n)
	}
	if known := c.knows("s", "g"); known != "" || strings.Contains(c.ask("KEYS", "streamproxy:*"), "lease") {
		t.Errorf("the stream is known as %q, or there is a lease", known)
	}
}

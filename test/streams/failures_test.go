//go:build streams

package streams

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// fleet is two proxies of one server with a worker each.
type fleet struct {
	s       *redistest.Server
	list    []string
	ledger  *ledger
	proxies [2]*process
}

// startFleet waits until both proxies know all the streams.
func startFleet(t *testing.T, opts ...redistest.Option) *fleet {
	t.Helper()
	f := &fleet{s: redistest.Start(t, opts...), list: names("s", 40), ledger: newLedger()}
	c := direct(t, f.s)
	groups(c, "g", f.list)
	for i := range f.proxies {
		f.proxies[i] = startProcess(t, f.s.Addr())
		w := worker{group: "g", name: fmt.Sprint("live", i), streams: f.list, form: locked, block: 300 * time.Millisecond, count: 8, ledger: f.ledger}
		w.start(t, f.proxies[i].addr, true)
	}
	for _, p := range f.proxies {
		connect(t, p.addr).state(f.list[39], "g", "cold")
	}
	return f
}

// leader is the proxy that holds the lease, and the other one.
func (f *fleet) leader(t *testing.T) (leader, other *process) {
	t.Helper()
	eventually(t, "one of them leads", func() bool {
		switch {
		case f.proxies[0].leads():
			leader, other = f.proxies[0], f.proxies[1]
		case f.proxies[1].leads():
			leader, other = f.proxies[1], f.proxies[0]
		}
		return leader != nil
	})
	return leader, other
}

// The proxy that leads is killed when a dead worker's entries have just become reclaimable: with
// luck while it hands them out. What it had claimed and not delivered waits one more min-idle.
func TestKilledLeader(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	leader, other := f.leader(t)
	begin := time.Now()
	dead := abandon(direct(t, f.s), "g", "dead", f.list, 500)
	eventually(t, "the first arrive", func() bool { return f.ledger.missing(dead) < len(dead) })
	leader.kill()
	eventually(t, "all arrive", func() bool { return f.ledger.missing(dead) == 0 })
	took := f.ledger.last(dead).Sub(begin)
	if limit := bound(300*time.Millisecond) + 2*interval + minIdle + slack; took > limit {
		t.Errorf("took %v, more than %v", took, limit)
	}
	nothingLeft(direct(t, f.s), "g", f.list)
	f.ledger.atLeastOnce(t, dead)
	eventually(t, "the other one leads", other.leads)
	t.Logf("took %v", took)
}

// Case 49. The proxy that leads is stopped past the end of its lease, with its worker. The other
// one takes over; the old one, when it goes on, hands out nothing a second time.
func TestCase49StoppedLeader(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	leader, other := f.leader(t)
	leader.signal(syscall.SIGSTOP)
	stopped := time.Now()
	dead := abandon(direct(t, f.s), "g", "dead", f.list, 500)
	took := within(t, 3*interval+slack, "the other one leads", other.leads)
	eventually(t, "all have been acked", func() bool { return f.ledger.settled(dead) == len(dead) })
	if took, limit := f.ledger.last(dead).Sub(stopped), bound(300*time.Millisecond)+2*interval+slack; took > limit {
		t.Errorf("took %v, more than %v", took, limit)
	}
	leader.signal(syscall.SIGCONT)
	more := abandon(direct(t, f.s), "g", "dead", f.list, 500)
	eventually(t, "all of these have been acked", func() bool { return f.ledger.settled(more) == len(more) })
	f.ledger.exact(t, dead, 2)
	f.ledger.exact(t, more, 2)
	nothingLeft(direct(t, f.s), "g", f.list)
	t.Logf("the lease was taken over after %v", took)
}

// A proxy that is told to end gives its lease up before it does. One that another holds by then stays.
func TestTerminatedLeader(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	at := direct(t, s)
	groups(at, "g", []string{"s"})
	p := startProcess(t, s.Addr())
	c := connect(t, p.addr)
	c.learn("g", "c", minIdleMillis, "s")
	eventually(t, "it leads", p.leads)
	p.signal(syscall.SIGTERM)
	p.once.Do(func() { _ = p.cmd.Wait() })
	at.gets("*0\r\n", "KEYS", "*lease*")

	p = startProcess(t, s.Addr())
	c = connect(t, p.addr)
	c.learn("g", "c", minIdleMillis, "s")
	eventually(t, "it leads", p.leads)
	lease := text(at.value("KEYS", "*lease*").Elems[0])
	at.gets("+OK\r\n", "SET", lease, "another's")
	p.signal(syscall.SIGTERM)
	p.once.Do(func() { _ = p.cmd.Wait() })
	at.gets(bulk("another's"), "GET", lease)
}

// Redis is killed, with everything it has acknowledged on disk, among messages and entries that are
// being reclaimed. Nothing is lost, and what was acked stays so.
func TestKilledRedis(t *testing.T) {
	t.Parallel()
	f := startFleet(t, redistest.WithArgs("--appendonly", "yes", "--appendfsync", "always"))
	fresh := publish(direct(t, f.s), f.list, 200)
	dead := abandon(direct(t, f.s), "g", "dead", f.list, 500)
	eventually(t, "the first arrive", func() bool { return f.ledger.missing(dead) < len(dead) })
	f.s.Restart()
	more := publish(direct(t, f.s), f.list, 200)
	all := append(append(fresh, dead...), more...)
	eventually(t, "all arrive", func() bool { return f.ledger.missing(all) == 0 })
	nothingLeft(direct(t, f.s), "g", f.list)
	f.ledger.atLeastOnce(t, all)
}

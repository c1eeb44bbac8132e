//go:build streams

package streams

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
)

// startLink opens a link to addr on which a test plays faults.
func startLink(t testing.TB, addr string) *netlab.Link {
	t.Helper()
	l, err := netlab.Start(netlab.Options{Upstream: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// A client asks, the proxy claims for it, and it has left when the claim is answered: no byte of it
// was written. What it asked for, and what was claimed ahead for its next questions, goes back to
// where it was, and the next one gets it at once.
func TestLeaveBeforeTheReply(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	link := startLink(t, s.Addr())
	f := startProxy(t, link.Addr())
	at, first, second := direct(t, s), f.client(), f.client()
	list := names("s", 5)
	groups(at, "g", list)
	first.learn("g", "first", minIdleMillis, list...)
	second.learn("g", "second", minIdleMillis, list...)
	for i, stream := range list {
		deliver(at, stream, "g", "dead", time.Hour, fmt.Sprint(i+1, "-1"))
	}
	for _, stream := range list {
		first.state(stream, "g", "hot")
	}
	link.Stall(netlab.ToClient)
	first.sends(claimCommand(list[0], "g", "first", minIdleMillis, "10")...)
	for _, stream := range list {
		eventually(t, "the entry is claimed", func() bool { return at.pendings(stream, "g")[0].owner == "first" })
	}
	reset(first.Conn)
	link.Resume(netlab.ToClient)
	for _, stream := range list {
		eventually(t, "the entry is given back", func() bool { return at.pendings(stream, "g")[0].owner == "dead" })
		if p := at.pendings(stream, "g")[0]; p.count != 1 || p.idle < time.Hour {
			t.Errorf("%s: given back as %+v", stream, p)
		}
	}
	for i, stream := range list {
		second.gets("*3\r\n"+bulk("0-0")+entries(fmt.Sprint(i+1, "-1"))+"*0\r\n",
			claimCommand(stream, "g", "second", minIdleMillis, "10")...)
		if p := at.pendings(stream, "g")[0]; p.owner != "second" || p.count != 2 {
			t.Errorf("%s: handed on as %+v", stream, p)
		}
	}
	eventually(t, "all are accounted for", func() bool { return f.count("given_back") == 5 && f.count("delivered") == 5 })
}

// The same for a read that was blocked and is given what others have left.
func TestLeaveWhileParked(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	link := startLink(t, s.Addr())
	f := startProxy(t, link.Addr())
	at, c := direct(t, s), f.client()
	groups(at, "g", []string{"s"})
	c.learn("g", "c", minIdleMillis, "s")
	c.sends(readCommand("g", "c", 10, 0, []string{"s"})...)
	at.blocked(1)
	deliver(at, "s", "g", "dead", time.Hour, "1-1")
	eventually(t, "the proxy claims it", func() bool {
		if at.pendings("s", "g")[0].owner != "c" {
			return false
		}
		link.Stall(netlab.ToClient)
		return true
	})
	reset(c.Conn)
	link.Resume(netlab.ToClient)
	// Whichever was first, the entry is not lost: somebody else gets it.
	other := f.client()
	var got string
	eventually(t, "another gets it", func() bool {
		v := other.value(claimCommand("s", "g", "other", minIdleMillis, "10")...)
		if len(v.Elems[1].Elems) == 0 {
			return false
		}
		got = text(v.Elems[1].Elems[0].Elems[0])
		return true
	})
	if got != "1-1" {
		t.Errorf("got %s", got)
	}
}

// The server has handed a new entry to a blocked read when it hears that the client has left, in
// whichever way. With a profile it is reclaimable at once, by the next one that asks, as its first delivery.
func TestCase58FreshEntryForAClientThatLeft(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	link := startLink(t, s.Addr())
	f := startProxy(t, link.Addr())
	at, other := direct(t, s), f.client()
	groups(at, "g", []string{"s"})
	other.learn("g", "other", "60000", "s")
	calls := func() (n string) {
		for line := range strings.Lines(s.Do("INFO", "commandstats")) {
			if strings.HasPrefix(line, "cmdstat_client") {
				count, _, _ := strings.Cut(line, ",")
				n += count
			}
		}
		return n
	}
	for round := range 20 {
		id := fmt.Sprint(round+1, "-1")
		c := f.client()
		c.sends(readCommand("g", "c", 10, 0, []string{"s"})...)
		at.blocked(1)
		link.Stall(netlab.ToClient)
		at.gets(bulk(id), "XADD", "s", id, "f", "v")
		at.blocked(0)
		if round%2 == 0 {
			reset(c.Conn)
		} else {
			before := calls()
			_ = c.Close()
			eventually(t, "the read is called back", func() bool { return calls() != before })
		}
		link.Resume(netlab.ToClient)
		eventually(t, "it is given back", func() bool { return at.pendings("s", "g")[0].count == 0 })
		if p := at.pendings("s", "g")[0]; p.id != id || p.owner != "c" || p.idle < time.Minute {
			t.Fatalf("round %d: given back as %+v", round, p)
		}
		within(t, 2*interval+slack, "another gets it", func() bool {
			return len(other.value(claimCommand("s", "g", "other", "60000", "10")...).Elems[1].Elems) == 1
		})
		if p := at.pendings("s", "g")[0]; p.owner != "other" || p.count != 1 {
			t.Fatalf("round %d: handed on as %+v", round, p)
		}
		other.gets(":1\r\n", "XACK", "s", "g", id)
	}
}

// What is claimed for the rest of a pass does not age in the proxy: a client that goes on with
// something else has it for a second, then it is what it was.
func TestCase51HeldEntriesGoBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	at, c := direct(t, s), f.client()
	list := names("s", 3)
	groups(at, "g", list)
	c.learn("g", "c", minIdleMillis, list...)
	for i, stream := range list {
		deliver(at, stream, "g", "dead", time.Hour, fmt.Sprint(i+1, "-1"))
	}
	for _, stream := range list {
		c.state(stream, "g", "hot")
	}
	begin := time.Now()
	c.gets("*3\r\n"+bulk("0-0")+entries("1-1")+"*0\r\n", claimCommand(list[0], "g", "c", minIdleMillis, "10")...)
	c.gets("*3\r\n"+bulk("0-0")+entries("2-1")+"*0\r\n", claimCommand(list[1], "g", "c", minIdleMillis, "10")...)
	if p := at.pendings(list[2], "g")[0]; p.owner != "c" {
		t.Fatalf("nothing is held: %+v", p)
	}
	eventually(t, "it goes back", func() bool { return at.pendings(list[2], "g")[0].owner == "dead" })
	if took := time.Since(begin); took > time.Second+slack {
		t.Errorf("it was held for %v", took)
	}
	if p := at.pendings(list[2], "g")[0]; p.count != 1 || p.idle < time.Hour {
		t.Errorf("given back as %+v", p)
	}
	if n := f.count("given_back"); n != 1 {
		t.Errorf("%d entries were given back", n)
	}
}

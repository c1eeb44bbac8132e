package proxy

import (
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"streamproxy/internal/redistest"
)

// held is how many connections the proxy has for clients.
func (p *testProxy) held() int {
	st := p.Stats()
	return st.Lanes + st.PrivateIdle + st.PrivateBusy
}

// left waits until only the default key's hub and so many unused ones are there.
func (p *testProxy) left(unused int) {
	p.t.Helper()
	until(p.t, "the clients to have left", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.unused.order.Len() == unused && len(p.hubs) == unused+1
	})
}

// Clients that are somebody else all the time leave few connections behind, and the last of those who
// they were finds its own again.
func TestUnusedHubsKeepFewConnections(t *testing.T) {
	a := startAsked(t)
	p := startProxy(t, a.fakeServer, func(c *Config) { c.MaxLanes = 10 * maxUnused })
	const each = moveBurst / userMoves // as many as a client may be at once
	const clients = 2 * maxUnused / each
	for i := range clients {
		c := p.client()
		for n := range each {
			expect(t, c, "+OK\r\n", "AUTH", fmt.Sprintf("user%d", i*each+n), "right")
			expect(t, c, bulkReply("k"), "GET", "k")
		}
		c.Close()
		until(t, "the client to have left", func() bool { return p.Stats().Clients == 0 })
	}
	if n := len(p.unusedHubs()); n < maxUnused/2 || n > maxUnused {
		t.Errorf("%d places that nobody uses", n)
	}
	until(t, "what is over the bound to be closed", func() bool { return p.held() <= maxUnused+1+p.cfg.PrivateMinIdle })
	if p.warm.Load() != p.hubs[p.defaultKey()] {
		t.Error("spares are kept ready for who is not there")
	}
	list := p.unusedHubs()
	last := list[len(list)-1]
	c := p.client()
	expect(t, c, "+OK\r\n", "AUTH", fmt.Sprintf("user%d", clients*each-1), "right")
	if p.sessions.all()[0].home.Load() != last || last.lanesHeld() == 0 {
		t.Error("who was there last does not find the lane it left")
	}
}

// A lane that nobody uses is given up for who has none, the one that was left first.
func TestLanesAreForWhoIsThere(t *testing.T) {
	a := startAsked(t)
	var met *[numLimits]atomic.Int64
	p := startProxy(t, a.fakeServer, func(c *Config) {
		c.MaxLanes = 3
		met = counted(c)
	})
	stays := p.client()
	expect(t, stays, bulkReply("k"), "GET", "k")
	login := func(user string) *redistest.Client {
		c := p.client()
		expect(t, c, "+OK\r\n", "AUTH", user, "right")
		expect(t, c, bulkReply("k"), "GET", "k")
		return c
	}
	for i, user := range []string{"first", "second"} {
		login(user).Close()
		p.left(i + 1)
	}
	login("alice")
	if n := met[LimitLanes].Load(); n != 0 {
		t.Errorf("%d times a client found no lane", n)
	}
	var users []string
	for _, h := range p.unusedHubs() {
		users = append(users, h.key.User.Name)
	}
	if len(users) != 1 || users[0] != "second" {
		t.Errorf("unused are %q, want the one left last", users)
	}
	login("bob")
	login("carol")
	if n := met[LimitLanes].Load(); n == 0 {
		t.Error("a lane was taken from who is there")
	}
}

// A server that has no more room gets back what nobody uses.
func TestUnusedGoWhereThereIsNoRoom(t *testing.T) {
	a := startAsked(t)
	room := 1 << 20
	lets := a.fakeServer.answer
	a.script(func(c *fakeConn, args []string) (string, bool) {
		if c.name == "" && len(a.conns) > room {
			return "-ERR max number of clients reached\r\n", true
		}
		return lets(c, args)
	})
	p := startProxy(t, a.fakeServer, nil)
	until(t, "the spares", func() bool { return p.Stats().PrivateIdle == p.cfg.PrivateMinIdle })
	c := p.client()
	expect(t, c, "+OK\r\n", "AUTH", "alice", "right")
	expect(t, c, bulkReply("k"), "GET", "k")
	c.Close()
	p.left(1)
	until(t, "all others to be there", func() bool { return p.Stats().Control == 1+keptProvers })
	a.mu.Lock()
	room = len(a.conns)
	a.mu.Unlock()
	c = p.client()
	expect(t, c, "+OK\r\n", "AUTH", "bob", "right")
	expect(t, c, bulkReply("k"), "GET", "k")
}

// fullListener fails once as it does when no descriptor is left.
type fullListener struct {
	net.Listener
	failed bool
}

func (l *fullListener) Accept() (net.Conn, error) {
	if !l.failed {
		l.failed = true
		return nil, syscall.EMFILE
	}
	return l.Listener.Accept()
}

// Nor does a client find that there are no descriptors while some serve nobody.
func TestUnusedGoForClients(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	c := p.client()
	expect(t, c, "+OK\r\n", "SELECT", "5")
	expect(t, c, bulkReply("k"), "GET", "k") // over a lane, which stays
	c.Close()
	p.left(1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(&fullListener{Listener: l}) }()
	p.left(0)
	l.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// What is used, or has something under way, is not given up.
func TestUsedHubsStay(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	h := p.otherHub()
	ctx, cancel := p.within(patience)
	defer cancel()
	lane, err := h.lane(0).Await(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if p.discard(h) {
		t.Error("given up while it is used")
	}
	w := newCollector(1, 0)
	if err := lane.Submit(w, nil, []byte("*3\r\n$5\r\nBLPOP\r\n$1\r\nk\r\n$1\r\n0\r\n"), 1); err != nil {
		t.Fatal(err)
	}
	f.await(t, "BLPOP", 1)
	p.leaveHub(h)
	if p.discard(h) {
		t.Error("given up while something is under way")
	}
	f.mu.Lock()
	for _, c := range f.conns {
		if c.blocked {
			c.blocked = false
			fmt.Fprint(c, "*-1\r\n")
		}
	}
	f.mu.Unlock()
	<-w.done
	until(t, "it to be given up", func() bool { return p.discard(h) })
	<-lane.Done()
	if len(p.unusedHubs()) != 0 || p.hubs[h.key] != nil {
		t.Error("it is listed yet")
	}
	p.enterHub(h) // as one of its connections does that comes back late
	p.leaveHub(h)
	if len(p.unusedHubs()) != 0 {
		t.Error("what was given up is back")
	}
}

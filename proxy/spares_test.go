package proxy

import (
	"fmt"
	"testing"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
)

// Spares are used from the warm end and trimmed from the cold one.
func TestSpares(t *testing.T) {
	var s spares
	conns := make([]*batcher.Conn, 4)
	for i := range conns {
		conns[i] = new(batcher.Conn)
		s.push(conns[i])
	}
	if s.pop() != conns[3] || s.len() != 3 {
		t.Error("not the one used last")
	}
	if !s.take(conns[1]) || s.take(conns[1]) {
		t.Error("a particular one is found once")
	}
	if old := s.idleSince(time.Now().Add(-time.Hour), 0); len(old) != 0 {
		t.Errorf("%d are too old", len(old))
	}
	if old := s.idleSince(time.Now().Add(time.Hour), 1); len(old) != 1 || old[0] != conns[0] {
		t.Errorf("%d trimmed, want the oldest", len(old))
	}
	if s.pop() != conns[2] || s.pop() != nil {
		t.Error("one was to be kept")
	}
}

// A connection that is back only between two reads is no surplus, for which another
// would be closed and dialled anew.
func TestSparesInUseAreNoSurplus(t *testing.T) {
	var s spares
	for range 3 {
		s.push(new(batcher.Conn))
	}
	soon := time.Now().Add(time.Hour)
	s.idleSince(soon, 2)
	for range 5 {
		s.push(s.pop())
		if old := s.idleSince(soon, 2); len(old) != 0 {
			t.Fatalf("%d trimmed though one of three was in use", len(old))
		}
	}
	if old := s.idleSince(soon, 2); len(old) != 1 {
		t.Errorf("%d trimmed after a while without use, want 1", len(old))
	}
}

// What was dialled in the place of a spare in use is not closed when that comes back, while such use
// goes on: it would be dialled again the next time.
func TestSparesOutliveAPauseInUse(t *testing.T) {
	p := startProxy(t, startFake(t), nil)
	h := p.hubOf(p.defaultKey())
	defer p.leaveHub(h)
	p.warm.Store(h)
	c, err := h.borrow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	settled := func(n int) func() bool {
		return func() bool {
			h.spares.mu.Lock()
			defer h.spares.mu.Unlock()
			return len(h.spares.idle) == n && h.spares.dialing == 0
		}
	}
	until(t, "others in its place", settled(p.cfg.PrivateMinIdle))
	h.giveBack(c)
	for i := range 4 { // a look is needed to see that none is in use
		h.trim(time.Now().Add(spareIdle + time.Duration(i)*time.Second))
	}
	if n := h.spares.len(); n != p.cfg.PrivateMinIdle+1 {
		t.Errorf("%d spares after a pause, want one more than are kept ready", n)
	}
	h.trim(time.Now().Add(peakSpan + time.Second))
	if n := h.spares.len(); n != p.cfg.PrivateMinIdle {
		t.Errorf("%d spares after a long one", n)
	}
}

// Dials under way count as spares, so that no more are begun than are wanted.
func TestWantMore(t *testing.T) {
	var s spares
	for i, want := range []bool{true, true, false} {
		if s.wantMore(2) != want {
			t.Errorf("dial %d: %v", i, !want)
		}
	}
	s.dialed()
	if !s.wantMore(2) {
		t.Error("a dial that has ended still counts")
	}
}

// The key in use keeps its spares ready; one that dies is replaced.
func TestSparesAreKeptReady(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	until(t, "two spares", func() bool { return p.Stats().PrivateIdle == 2 })
	before := f.dials()
	f.cut("private")
	until(t, "new ones", func() bool { return f.dials() >= before+2 && f.kinds("private") == 2 && p.Stats().PrivateIdle == 2 })
	expect(t, p.client(), bulkReply("a"), "GET", "a")
}

func (f *fakeServer) dials() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids
}

func (f *fakeServer) kinds(kind string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		if c.kind == kind {
			n++
		}
	}
	return n
}

// Databases that cannot be had leave nothing behind: no hub, no lane that dials for
// ever. Those that can be had are kept, and are forgotten once they are empty.
func TestHubsAreForgotten(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	c := p.client()
	for db := 16; db < 26; db++ {
		expect(t, c, "-ERR DB index is out of range\r\n", "SELECT", fmt.Sprint(db))
	}
	if n := len(p.allHubs()); n != 1 {
		t.Errorf("%d hubs after databases that do not exist", n)
	}
	expect(t, c, "+OK\r\n", "SELECT", "3")
	expect(t, c, bulkReply("a"), "GET", "a")
	other := p.client()
	expect(t, other, "+OK\r\n", "SELECT", "3")
	f.leave(t, p)
	var waiting []*redistest.Client
	for db := 4; db < 8; db++ {
		w := p.client()
		if err := w.SendCommand("SELECT", fmt.Sprint(db)); err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, w)
	}
	for _, w := range waiting {
		expectEnd(t, w)
	}
	until(t, "their hubs to go", func() bool { return len(p.allHubs()) <= 2 })
	if n := len(p.allHubs()); n != 2 {
		t.Errorf("%d hubs, want those of databases 0 and 3", n)
	}
	c.Close()
	other.Close()
	until(t, "the unused one to go", func() bool { return len(p.allHubs()) == 1 })
}

// What comes back to a hub that has been forgotten is closed, not kept for nobody.
func TestGiveBackToNobody(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	h := p.otherHub()
	ctx, cancel := p.within(patience)
	defer cancel()
	conn, err := h.borrow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.warm.Store(p.hubOf(p.defaultKey()))
	until(t, "no spares", func() bool {
		h.closeSpares()
		h.spares.mu.Lock()
		defer h.spares.mu.Unlock()
		return h.spares.dialing == 0 && len(h.spares.idle) == 0
	})
	p.leaveHub(h)
	h.giveBack(conn)
	select {
	case <-conn.Done():
	case <-time.After(patience):
		t.Error("the connection is kept")
	}
}

// A connection that was a lane a moment ago is lent for nothing that may end it: others may still ask
// how far what they wrote on it has come.
func TestWhatWasALaneIsNotHeld(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	until(t, "the server to be known", p.health.up.Load)
	h := p.hubOf(upstream.Key{Proto: 2})
	defer p.leaveHub(h)
	lane, err := h.lane(0).Await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var s spares
	lane.Retire()
	if !lane.Unshare() {
		t.Fatal("it is not empty")
	}
	s.push(lane)
	if c := s.first(); c != nil {
		t.Error("it is taken to be held")
	}
	_, w := s.reserve((*spares).first, claim{regular: true, use: useHold})
	if w == nil {
		t.Error("it is lent to who blocks")
	}
	if c := s.pop(); c != lane {
		t.Fatal("nobody gets it")
	}
	s.push(lane)
	if len(w.served) != 0 {
		t.Error("it is handed to who blocks")
	}
	if _, brief := s.reserve((*spares).last, claim{}); brief != nil {
		t.Error("a moment's use does not get it")
	}
}

// A command that the server refuses again and again leaves its connection as it was, and the next one
// has it, or another spare: none is dialled for it.
func TestRefusedCommandsCostNoDials(t *testing.T) {
	f := startFake(t)
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		return "-ERR unknown command\r\n", args[0] == "NOSUCH"
	})
	p := startProxy(t, f, func(c *Config) { c.PrivateMinIdle = 2 })
	c := p.client()
	expect(t, c, bulkReply("a"), "GET", "a")
	until(t, "the spares", func() bool { return p.Stats().PrivateIdle == 2 })
	before := f.dials()
	for range 100 {
		expect(t, c, "-ERR unknown command\r\n", "NOSUCH", "x")
	}
	if n := f.dials() - before; n > 8 { // a few, as spares are made while some are in use
		t.Errorf("%d dials", n)
	}
}

package proxy

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/redcon"

	"streamproxy/internal/redistest"
)

// The ceiling is 64 here, of which 48 may be needed and 8 are left for buffers.
func TestCeiling(t *testing.T) {
	type moment struct {
		need        int64
		collections uint64
		buffers     int64
		remembered  int64
		usual       int64
		limit       int64 // wanted
		full        bool  // wanted
	}
	for _, tt := range []struct {
		name    string
		moments []moment
	}{
		{"little is needed", []moment{{10, 1, 0, 0, 0, 32, false}, {20, 2, 5, 0, 5, 32, false}}},
		{"the rest grows", []moment{{10, 1, 0, 0, 0, 32, false}, {32, 2, 0, 0, 0, 16, false}, {42, 3, 0, 0, 0, 8, true}}},
		{"buffers are not the rest", []moment{{10, 1, 0, 0, 0, 32, false}, {40, 2, 30, 0, 0, 32, false}}},
		{"nor when they have been dropped and not collected", []moment{{10, 1, 0, 0, 0, 32, false}, {46, 2, 30, 0, 0, 32, false}, {46, 2, 0, 0, 0, 32, false}}},
		{"nor when they have grown and not been collected", []moment{{10, 1, 0, 0, 0, 32, false}, {26, 2, 0, 0, 0, 22, false}, {26, 2, 20, 0, 0, 22, false}}},
		{"who has just come will cost more", []moment{{10, 1, 0, 0, 0, 32, false}, {12, 1, 0, 0, 40, 8, true}}},
		{"what is remembered stays beside the reserve", []moment{{10, 1, 0, 0, 0, 32, false}, {50, 2, 4, 4, 0, 12, true}}},
		{"room is made", []moment{{10, 1, 0, 0, 0, 32, false}, {42, 2, 0, 0, 0, 8, true}, {40, 3, 0, 0, 0, 8, true}, {39, 4, 0, 0, 0, 9, false}, {40, 5, 0, 0, 0, 8, false}}},
		{"more than there is", []moment{{10, 1, 0, 0, 0, 32, false}, {80, 2, 0, 0, 0, 8, true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const mib = 1 << 20
			var c ceiling
			c.init(64*mib, 32*mib)
			for i, m := range tt.moments {
				was := c.full.Load()
				changed := c.step(reading{Need{m.need * mib, m.collections}, m.buffers * mib, m.remembered * mib, m.usual * mib})
				if limit, full := c.limit.Load()/mib, c.full.Load(); limit != m.limit || full != m.full || changed != (full != was) {
					t.Errorf("moment %d: limit %d, full %v, changed %v; want %d, %v", i, limit, full, changed, m.limit, m.full)
				}
			}
		})
	}
}

// A collection shows the room that somebody has made, and nobody else asks for one.
func TestCeilingCollects(t *testing.T) {
	var c ceiling
	c.init(64<<20, 32<<20)
	now := time.Unix(1000, 0)
	for i, m := range []struct {
		after time.Duration
		full  bool
		held  int64
		want  bool
	}{
		{0, false, 40, false},
		{time.Hour, true, 40, true},
		{time.Second, true, 40, false},
		{time.Second, true, 30, true},
		{100 * time.Millisecond, true, 10, false},
		{200 * time.Millisecond, true, 10, true},
		{recollect - 1, true, 10, false},
		{1, true, 10, true},
		{time.Hour, false, 0, false},
	} {
		now = now.Add(m.after)
		c.full.Store(m.full)
		if got := c.worthCollecting(now, m.held<<20); got != m.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

// startBelow starts a proxy that needs what the returned number says.
func startBelow(t *testing.T, f *fakeServer, top int64, setUp func(c *Config)) (*testProxy, *atomic.Int64) {
	t.Helper()
	need := new(atomic.Int64)
	var collections atomic.Uint64
	return startProxy(t, f, func(c *Config) {
		c.Ceiling, c.MemoryLimit = top, top/2
		c.Need = func() Need { return Need{need.Load(), collections.Add(1)} }
		if setUp != nil {
			setUp(c)
		}
	}), need
}

// Nobody is taken on where nothing is left, and hears why; who is there is served. A connection that
// is at hand may be used.
func TestNobodyIsTakenOnAtTheCeiling(t *testing.T) {
	const top = 64 << 20
	f := startFake(t)
	f.script(func(_ *fakeConn, args []string) (string, bool) { return "$-1\r\n", args[0] == "BLPOP" })
	var met *[numLimits]atomic.Int64
	var refused atomic.Int64
	p, need := startBelow(t, f, top, func(c *Config) {
		met = counted(c)
		c.Events.Accepted = func(result string) {
			if result == "memory" {
				refused.Add(1)
			}
		}
	})
	c := p.client()
	expect(t, c, bulkReply("a"), "GET", "a")
	expect(t, c, "$-1\r\n", "BLPOP", "q", "0")
	h := p.warm.Load()
	lane := h.lane(p.sessions.all()[0].id)
	until(t, "its lane, spares, and no dials", func() bool {
		expect(t, c, bulkReply("a"), "GET", "a")
		h.spares.mu.Lock()
		defer h.spares.mu.Unlock()
		if lane.Conn() == nil || len(h.spares.idle) != p.cfg.PrivateMinIdle || h.spares.dialing != 0 {
			return false
		}
		h.spares.dialing = manyDials // none is dialled ahead in the place of one that is used
		return true
	})

	need.Store(top)
	until(t, "nobody to be taken on", func() bool { p.measure(); return p.ceiling.full.Load() })
	expect(t, c, bulkReply("a"), "GET", "a")
	expect(t, c, "$-1\r\n", "BLPOP", "q", "0")
	until(t, "the spare to be back", func() bool { return h.spares.len() == p.cfg.PrivateMinIdle })
	h.closeSpares()
	if err := c.Send(redistest.Command("BLPOP", "q", "0") + redistest.Command("GET", "b")); err != nil {
		t.Fatal(err)
	}
	short := string(redcon.AppendError(nil, textShort))
	expectReply(t, c, short)
	expectReply(t, c, short) // a pipeline is never torn
	expect(t, c, bulkReply("a"), "GET", "a")
	late := p.client()
	expectReply(t, late, string(redcon.AppendError(nil, textMemory)))
	if _, err := late.ReadReply(); err == nil {
		t.Error("one more was taken on")
	}
	if met[LimitMemory].Load() != 2 || refused.Load() != 1 {
		t.Errorf("counted %d, and %d refused", met[LimitMemory].Load(), refused.Load())
	}
	h.spares.mu.Lock()
	h.spares.dialing -= manyDials
	h.spares.mu.Unlock()

	need.Store(top / 8)
	until(t, "others to be taken on", func() bool { p.measure(); return !p.ceiling.full.Load() })
	expect(t, p.client(), bulkReply("a"), "GET", "a")
	expect(t, c, "$-1\r\n", "BLPOP", "q", "0")
}

// A client counts at once for what it will cost: between two looks of anybody else thousands may come.
func TestWhoIsTakenOnIsMeasuredAtOnce(t *testing.T) {
	p, _ := startBelow(t, startFake(t), 4<<20, nil)
	p.measure()
	p.ceiling.mu.Lock()
	p.ceiling.base += p.ceiling.needs() - p.ceiling.reserve()
	p.ceiling.mu.Unlock()
	const most = 4<<20/64/idleClient + 1 // a look each so many
	taken := 0
	for range 2 * most {
		if got, err := p.client().Do("GET", "a"); err != nil || got != bulkReply("a") {
			break
		}
		taken++
	}
	if taken > most {
		t.Errorf("%d were taken on, want at most %d", taken, most)
	}
}

// Buffers may take what the rest leaves.
func TestTheGreediestAreRefusedBelowTheCeiling(t *testing.T) {
	const top = 64 << 20
	p, need := startBelow(t, startFake(t), top, nil)
	c := p.client()
	if err := c.Send("*2\r\n$4\r\nECHO\r\n$60000\r\n" + strings.Repeat("x", 50000)); err != nil {
		t.Fatal(err)
	}
	until(t, "a part to be held", func() bool { return p.buffered.Load() > 50000 })
	p.buffered.Add(16 << 20) // somebody else's
	defer p.buffered.Add(-16 << 20)
	need.Store(top / 4) // most of it buffers
	p.measure()
	p.shed()
	if p.memoryLimit() != top/2 {
		t.Errorf("the limit is %d", p.memoryLimit())
	}
	need.Store(top)
	until(t, "the limit to fall", func() bool { p.measure(); return p.memoryLimit() < top/4 })
	p.shed()
	expectReply(t, c, string(redcon.AppendError(nil, textMemory)))
}

// What a reader brings before those who were refused have gone comes on top. So nobody is read from
// meanwhile, not even who holds nothing.
func TestNobodyIsReadFromInAFlood(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.MemoryLimit = 1 << 20 })
	c := p.client()
	expect(t, c, bulkReply("a"), "GET", "a")
	p.shedding.Lock()
	p.buffered.Add(2 << 20)
	p.ceded.Add(2 << 20)
	p.dropping.Add(2 << 20)
	if err := c.Send(redistest.Command("GET", "b")); err != nil {
		t.Fatal(err)
	}
	until(t, "it to wait", func() bool { return p.lobby.waiting.Load() == 1 })
	if n := f.count("GET b"); n != 0 {
		t.Error("it was read from")
	}
	p.buffered.Add(-2 << 20)
	p.ceded.Add(-2 << 20)
	p.dropping.Add(-2 << 20)
	p.shedding.Unlock()
	p.makeRoom()
	expectReply(t, c, bulkReply("b"))
}

// The places of arguments count as their bytes do, and so does a command that blocks.
func TestAllThatIsHeldCounts(t *testing.T) {
	f := startFake(t)
	blocked := make(chan struct{})
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		if args[0] == "BLPOP" {
			<-blocked
		}
		return "$-1\r\n", args[0] == "BLPOP"
	})
	p := startProxy(t, f, nil)
	const arguments, size = 1000, 60000
	half := p.client()
	if err := half.Send("*1001\r\n$3\r\nDEL\r\n" + strings.Repeat("$1\r\na\r\n", arguments-1)); err != nil {
		t.Fatal(err)
	}
	const spans = arguments * 16
	until(t, "the arguments to count", func() bool { return p.buffered.Load() >= spans+arguments*len64("$1\r\na\r\n")-100 })
	half.Close()
	until(t, "nothing to be held", func() bool { return p.buffered.Load() == 0 })

	c := p.client()
	if err := c.Send(redistest.Command("BLPOP", strings.Repeat("q", size), "0")); err != nil {
		t.Fatal(err)
	}
	until(t, "the command to count", func() bool { return p.inBuffers() >= size })
	close(blocked)
	expectReply(t, c, "$-1\r\n")
	until(t, "nothing to be held", func() bool { return p.inBuffers() == 0 })
}

func len64(s string) int64 { return int64(len(s)) }

// What a slow client has not taken counts with the memory that it takes.
func TestQueueRoom(t *testing.T) {
	var q queue
	check := func(when string) {
		t.Helper()
		room := 0
		for _, b := range q.pieces {
			room += cap(b.b)
		}
		if q.room != room {
			t.Errorf("%s: %d, of %d", when, q.room, room)
		}
	}
	for range 5 {
		q.add(make([]byte, 100<<10))
		check("added")
	}
	q.cut(150 << 10)
	check("cut")
	q.take(0).release()
	check("taken")
	q.take(q.size - 10).release()
	check("a part taken")
	q.drop()
	check("dropped")
}

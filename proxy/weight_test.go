package proxy

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// largeValue makes three replies too many for a shared connection, and two not.
var largeValue = strings.Repeat("v", 400_000)

// startLibrary starts a server that has one large value, and notes over which kind of connection it
// was asked for what. No spares are dialled: one of them could become the lane.
func startLibrary(t *testing.T) *fakeServer {
	t.Helper()
	f := startFake(t)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		switch {
		case args[0] == "WAIT":
			args[0] = c.kind + " WAIT"
			return ":1\r\n", true
		case args[0] != "GET":
			return "", false
		}
		args[0] = c.kind
		switch args[1] {
		case "large":
			return bulkReply(largeValue), true
		case "none":
			return "$-1\r\n", true
		case "silence":
			return "", true
		}
		return bulkReply(args[1]), true
	})
	return f
}

func withoutSpares(cfg *Config) { cfg.PrivateMinIdle = 0 }

// asks sends GETs in one write, and reads their replies.
func asks(t *testing.T, c *redistest.Client, keys ...string) {
	t.Helper()
	request := ""
	for _, k := range keys {
		request += redistest.Command("GET", k)
	}
	if err := c.Send(request); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		want := bulkReply(k)
		if k == "large" {
			want = bulkReply(largeValue)
		}
		expectReply(t, c, want)
	}
}

// settle has a client leave the newcomers' lane: what it was offered for that is no private
// connection to be found after it.
func settle(t *testing.T, p *testProxy, c *redistest.Client) {
	t.Helper()
	until(t, "the lane of who is known", func() bool {
		asks(t, c, "k")
		return p.Stats().Lanes == 2
	})
	asks(t, c, "k")
}

// seenSince returns what the server has seen since it was asked last.
func (f *fakeServer) seenSince() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen
	f.seen = nil
	return seen
}

// Who gets large replies gets them over a connection of its own when it asks for many at a time, and
// comes back to the lane when its replies are small again. One at a time they share the lane.
func TestHeavyPipeline(t *testing.T) {
	f := startLibrary(t)
	c := startProxy(t, f, withoutSpares).client()
	for range 40 {
		asks(t, c, "large")
	}
	if seen := f.seenSince(); slices.Contains(seen, "private large") {
		t.Errorf("one at a time: %q", seen)
	}
	asks(t, c, "large", "large", "large")
	if seen, want := f.seenSince(), slices.Repeat([]string{"private large"}, 3); !slices.Equal(seen, want) {
		t.Errorf("three at a time: %q", seen)
	}
	for range 20 { // each counts for as many as the mean runs over
		asks(t, c, slices.Repeat([]string{"k"}, 20)...)
	}
	f.seenSince()
	asks(t, c, slices.Repeat([]string{"k"}, 100)...)
	if seen := f.seenSince(); len(seen) != 100 || slices.Contains(seen, "private k") {
		t.Errorf("small again: %q", seen)
	}
}

// WAIT asks over the connection that carried the write, whatever the first reply there said.
func TestWaitAfterAHeavyPipeline(t *testing.T) {
	f := startLibrary(t)
	c := startProxy(t, f, withoutSpares).client()
	for range 40 {
		asks(t, c, "large")
	}
	expect(t, c, bulkReply("k"), "SET", "k", "v") // on the lane
	large := redistest.Command("GET", "large")
	if err := c.Send(redistest.Command("GET", "none") + redistest.Command("SET", "k", "v") + large + large + large); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"$-1\r\n", bulkReply("k"), bulkReply(largeValue), bulkReply(largeValue), bulkReply(largeValue)} {
		expectReply(t, c, want)
	}
	f.seenSince()
	expect(t, c, ":1\r\n", "WAIT", "1", "0")
	if seen := f.seenSince(); !slices.Equal(seen, []string{"private WAIT 1 0"}) {
		t.Errorf("%q", seen)
	}
}

// A session that is new is expected to get what the others get.
func TestHeavyPipelineOfANewSession(t *testing.T) {
	f := startLibrary(t)
	p := startProxy(t, f, withoutSpares)
	c := p.client()
	for range 10 {
		asks(t, c, "large")
	}
	f.seenSince()
	asks(t, p.client(), "large", "large", "large")
	if seen := f.seenSince(); slices.Contains(seen, "lane large") {
		t.Errorf("beside those who get large replies: %q", seen)
	}
}

// What stands behind a heavy pipeline in the same write is executed after it, and answered.
func TestBehindAHeavyPipeline(t *testing.T) {
	f := startLibrary(t)
	c := startProxy(t, f, withoutSpares).client()
	for range 40 {
		asks(t, c, "large")
	}
	for range 20 {
		f.seenSince()
		request := strings.Repeat(redistest.Command("GET", "large"), 5) + redistest.Command("CLIENT", "GETNAME") + redistest.Command("GET", "k")
		if err := c.Send(request); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			expectReply(t, c, bulkReply(largeValue))
		}
		expectReply(t, c, "$-1\r\n")
		expectReply(t, c, bulkReply("k"))
		seen := f.seenSince()
		if len(seen) != 6 || !strings.HasSuffix(seen[5], " k") || seen[0] != "private large" {
			t.Fatalf("%q", seen)
		}
	}
}

// Of sessions without a past only so many commands are under way at a time; when those are answered
// the others follow, and a session that has a past does not wait with them.
func TestNovicesWait(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(cfg *Config) { cfg.UpstreamWait = time.Minute })
	old := p.client()
	asks(t, old, "k")
	f.setMute(true)
	const pipeline, crowd = 64, 12
	request := strings.Repeat(redistest.Command("GET", "k"), pipeline)
	var novices []*redistest.Client
	for range crowd {
		c := p.client()
		if err := c.Send(request); err != nil {
			t.Fatal(err)
		}
		novices = append(novices, c)
	}
	under := func() int { return p.Stats().InFlight }
	until(t, "as many as may be under way", func() bool { return under() == maxNovices })
	if err := old.Send(request); err != nil {
		t.Fatal(err)
	}
	until(t, "who has a past goes ahead", func() bool { return under() == maxNovices+pipeline })
	f.setMute(false)
	f.cut("") // what was swallowed is answered as unknown
	for _, c := range append(novices, old) {
		for range pipeline {
			if _, err := c.ReadReply(); err != nil {
				t.Fatal(err)
			}
		}
	}
	h := p.hubOf(p.defaultKey())
	defer p.leaveHub(h)
	until(t, "every place is free again", func() bool {
		free := h.novices.TryAcquire(maxNovices)
		if free {
			h.novices.Release(maxNovices)
		}
		return free
	})
}

// The mean of a session follows its replies, that of a hub the bytes.
func TestWeights(t *testing.T) {
	var y typical
	for range 100 {
		y.learn(1_000_000, 1_000_000)
	}
	for range 10 { // a thousand small replies for one large
		y.learn(100, 100_000)
		y.learn(1_000_000, 1_000_000)
	}
	if got := y.size.Load(); got < 900_000 {
		t.Errorf("bytes that mostly belong to large replies: %d", got)
	}
	for range 100 {
		y.learn(100, typicalPiece)
	}
	if got := y.size.Load(); got > 10_000 {
		t.Errorf("small again: %d", got)
	}
}

// Nobody waits for what a client had asked to read that has reset its connection: its private one ends.
// What may have written is waited for.
func TestHeavyPipelineOfAClientThatResets(t *testing.T) {
	f := startLibrary(t)
	p := startProxy(t, f, withoutSpares)
	c := p.client()
	for range 40 {
		asks(t, c, "large")
	}
	if err := c.Send(strings.Repeat(redistest.Command("GET", "silence"), 5)); err != nil {
		t.Fatal(err)
	}
	until(t, "they are under way", func() bool { return p.Stats().InFlight == 5 })
	_ = c.Conn.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
	until(t, "nothing is under way any more", func() bool { st := p.Stats(); return st.InFlight == 0 && st.PrivateBusy == 0 })
}

// askForMuch has a client that is known to get large replies ask for muchLarge of what the server keeps
// back, in one write.
func askForMuch(t *testing.T, p *testProxy) *redistest.Client {
	t.Helper()
	c := p.client()
	settle(t, p, c)
	for range 100 { // its mean follows
		asks(t, c, "large")
	}
	if err := c.Send(strings.Repeat(redistest.Command("GET", "silence"), muchLarge)); err != nil {
		t.Fatal(err)
	}
	until(t, "something to be under way", func() bool { return p.Stats().InFlight > 0 })
	return c
}

const muchLarge = 64

// A server is asked for a portion of what a heavy pipeline brings, and for the next when it has answered.
func TestHeavyPipelineInPortions(t *testing.T) {
	f := startLibrary(t)
	p := startProxy(t, f, withoutSpares)
	var asked *fakeConn
	library := f.answer
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[len(args)-1] == "silence" {
			asked = c
		}
		return library(c, args)
	})
	c := askForMuch(t, p)
	most := portion/len(largeValue) + 1 // the mean may be a little less than each of them
	for answered := 0; answered < muchLarge; most = portion<<maxTrust/len(largeValue) + 1 {
		f.await(t, "private silence", answered+1)
		n := p.Stats().InFlight
		if n > most {
			t.Fatalf("%d commands under way, %d are a portion", n, most)
		}
		f.await(t, "private silence", answered+n)
		f.mu.Lock()
		to := asked
		f.mu.Unlock()
		for range n {
			if _, err := io.WriteString(to, bulkReply(largeValue)); err != nil {
				t.Fatal(err)
			}
			expectReply(t, c, bulkReply(largeValue))
		}
		answered += n
	}
}

// What was not asked for yet when a client resets its connection is not asked for any more, and what
// was is not waited for.
func TestHeavyPipelineEndsWithItsClient(t *testing.T) {
	f := startLibrary(t)
	p := startProxy(t, f, withoutSpares)
	c := askForMuch(t, p)
	portion := p.Stats().InFlight
	f.await(t, "private silence", portion)
	reset(c)
	until(t, "the session to end, and its connection", func() bool {
		st := p.Stats()
		return p.sessions.len() == 0 && st.InFlight == 0 && st.PrivateBusy == 0
	})
	expect(t, p.client(), bulkReply("k"), "GET", "k")
	if n := f.count("private silence"); n != portion {
		t.Errorf("the server was asked %d times, %d were a portion", n, portion)
	}
}

// Portions grow while the client takes them.
func TestPortionsGrow(t *testing.T) {
	s := &session{}
	s.weight.past.Store(true)
	s.weight.mean.Store(portion / 10)
	s.portion = s.portionNow()
	var got []int
	for _, owed := range []int{0, 0, 0, 1, 0} {
		got = append(got, s.portion)
		s.inWrite = owed
		s.nextPortion()
	}
	if want := []int{10, 20, 40, 40, 10}; !slices.Equal(got, want) {
		t.Errorf("%d commands, want %d", got, want)
	}
	s.weight.mean.Store(100)
	if n := s.portionNow(); n != maxOutstanding {
		t.Errorf("of small replies: %d", n)
	}
}

// A command of very many arguments has a connection to itself, alone or
// in a pipeline; what stands around it shares, and the order of replies is that of the commands.
func TestWideCommand(t *testing.T) {
	f := startLibrary(t)
	p := startProxy(t, f, withoutSpares)
	c := p.client()
	settle(t, p, c)
	wide := func(n int) string {
		return redistest.Command(slices.Concat([]string{"GET", "w"}, make([]string, n-2))...)
	}
	inline := "GET w" + strings.Repeat(" x", wideCommand-1) + "\r\n"
	f.seenSince()
	if err := c.Send(redistest.Command("GET", "b") + wide(wideCommand) + wide(wideCommand+1) + inline + redistest.Command("GET", "c")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"b", "w", "w", "w", "c"} {
		expectReply(t, c, bulkReply(want))
	}
	var kinds []string
	for _, s := range f.seenSince() {
		if kind, rest, _ := strings.Cut(s, " "); strings.HasPrefix(rest, "w") || len(rest) == 1 {
			kinds = append(kinds, kind)
		}
	}
	if got := strings.Join(kinds, " "); got != "lane lane private private lane" {
		t.Errorf("travelled by %s", got)
	}
}

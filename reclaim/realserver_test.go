package reclaim

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// realUpstream runs commands on a real server, over one connection per identity.
type realUpstream struct {
	t   testing.TB
	srv *redistest.Server

	mu    sync.Mutex
	conns map[Identity]*redistest.Client
	sent  []string // names of the commands sent as clients
}

func newRealUpstream(t testing.TB, srv *redistest.Server) *realUpstream {
	return &realUpstream{t: t, srv: srv, conns: make(map[Identity]*redistest.Client)}
}

func (u *realUpstream) Do(_ context.Context, as Identity, commands []byte, n int) ([][]byte, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	c, err := u.conn(as)
	if err != nil {
		return nil, err
	}
	for _, args := range splitCommands(commands) {
		u.sent = append(u.sent, strings.ToUpper(args[0]))
	}
	if err := c.Send(string(commands)); err != nil {
		return nil, err
	}
	var replies [][]byte
	for range n {
		r, err := c.ReadReply()
		if err != nil {
			return nil, err
		}
		replies = append(replies, []byte(r))
	}
	return replies, nil
}

func (u *realUpstream) DoUpTo(ctx context.Context, as Identity, commands []byte, n, most int) ([][]byte, error) {
	list, err := u.Do(ctx, as, commands, n)
	return upTo(list, most), err
}

func (u *realUpstream) Control(ctx context.Context, commands []byte, n int) ([][]byte, error) {
	return u.Do(ctx, Identity{Proto: 2}, commands, n)
}

// conn greets the server as an identity; the tests' users have their name as
// password.
func (u *realUpstream) conn(as Identity) (*redistest.Client, error) {
	if c := u.conns[as]; c != nil {
		return c, nil
	}
	c, err := redistest.Dial(u.srv.Addr())
	if err != nil {
		return nil, err
	}
	u.t.Cleanup(func() { _ = c.Close() })
	greeting := [][]string{{"HELLO", fmt.Sprint(as.Proto)}}
	if as.User.Name != "" {
		greeting[0] = append(greeting[0], "AUTH", as.User.Name, as.User.Name)
	}
	greeting = append(greeting, []string{"SELECT", fmt.Sprint(as.DB)})
	for _, g := range greeting {
		r, err := c.Do(g...)
		if err != nil || r[0] == '-' {
			return nil, fmt.Errorf("%v: %s%v", g, r, err)
		}
	}
	u.conns[as] = c
	return c, nil
}

// direct is a client of the server without any engine, in one protocol version.
func direct(t testing.TB, srv *redistest.Server, proto int) func(args ...string) string {
	c := srv.Client()
	do := func(args ...string) string {
		t.Helper()
		r, err := c.Do(args...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return r
	}
	do("HELLO", fmt.Sprint(proto))
	return do
}

func realEngine(t testing.TB, up Upstream, change func(*Config)) *Engine {
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	e, err := New(cfg, up)
	if err != nil {
		t.Fatal(err)
	}
	e.Start()
	t.Cleanup(e.Close)
	return e
}

// eventually polls until ok, because an engine works in the background.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(15 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

func TestReleaseScriptIsWhatClientsLoad(t *testing.T) {
	sum := sha1.Sum([]byte(releaseBody))
	if got := hex.EncodeToString(sum[:]); got != lockSHAs[scriptRelease] {
		t.Errorf("SHA1 is %s", got)
	}
}

// aged puts an entry of 1970 into a stream, delivered to a consumer long ago.
func aged(do func(...string) string, stream, id, owner string) {
	do("XADD", stream, id, "k", "v")
	do("XREADGROUP", "GROUP", "g", owner, "STREAMS", stream, ">")
	do("XCLAIM", stream, "g", owner, "0", id, "IDLE", "3600000", "RETRYCOUNT", "1", "JUSTID")
}

// TestLocalAnswersAreTheServersBytes asks the server and the engine the same, in
// each state of a stream, and compares.
func TestLocalAnswersAreTheServersBytes(t *testing.T) {
	srv := redistest.Start(t)
	for _, proto := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", proto), func(t *testing.T) {
			srv.Do("FLUSHALL")
			do := direct(t, srv, proto)
			names := []string{"a:{1}", "b"}
			for _, s := range append(names, "twin") {
				do("XGROUP", "CREATE", s, "g", "$", "MKSTREAM")
			}
			do("SCRIPT", "LOAD", releaseBody)
			up := newRealUpstream(t, srv)
			e := realEngine(t, up, nil)
			c := newTestClient(t, e, up, Identity{Proto: proto})
			c.do(readArgs("w", names)...)
			c.do("SCRIPT", "EXISTS", lockSHAs[scriptRelease])
			c.do(claimArgs(names[0], "w")...)
			same := func(what, got, want string) {
				t.Helper()
				if got != want {
					t.Errorf("%s: %q, the server says %q", what, got, want)
				}
				if a := c.actions[len(c.actions)-1]; a == Forward {
					t.Errorf("%s: forwarded", what)
				}
			}
			c.do(claimArgs("b", "w")...) // waits for the learning

			same("cold XAUTOCLAIM", c.do(claimArgs("b", "w")...), do(claimArgs("twin", "w")...))
			same("cold form", c.block(formOf("b", "g", "w", testMinIdleMS, "10", "t1")...), runBlock(do, formOf("twin", "g", "w", testMinIdleMS, "10", "t1")))
			same("SCRIPT EXISTS", c.do("SCRIPT", "EXISTS", lockSHAs[scriptRelease]), do("SCRIPT", "EXISTS", lockSHAs[scriptRelease]))
			do("SET", "held", coldToken)
			same("cold GET", c.do("GET", "autoclaim:g:b"), do("GET", "held"))

			heat(e, do, "b")
			aged(do, "twin", "1-1", "dead")
			same("hot GET", c.do("GET", "autoclaim:g:b"), do("GET", "none"))
			same("SET NX", c.do("SET", "autoclaim:g:b", "t2", "PX", "60000", "NX"), do("SET", "none", "t2", "PX", "60000", "NX"))
			same("hot form", c.block(formOf("b", "g", "w", testMinIdleMS, "10", "t3")...), runBlock(do, formOf("twin", "g", "w", testMinIdleMS, "10", "t3")))
			same("release", c.do("EVALSHA", lockSHAs[scriptRelease], "1", "autoclaim:g:b", "t2"), do("EVALSHA", lockSHAs[scriptRelease], "1", "none", "t2"))
			heat(e, do, "b")
			do("XCLAIM", "twin", "g", "dead", "0", "1-1", "IDLE", "3600000", "RETRYCOUNT", "1", "JUSTID")
			same("hot XAUTOCLAIM", c.do(claimArgs("b", "w")...), do(claimArgs("twin", "w")...))
			if srv.Do("EXISTS", "autoclaim:g:b") != ":0\r\n" {
				t.Error("the real lock was written")
			}
		})
	}
}

// heat puts an abandoned entry into a stream and lets the engine know of it.
func heat(e *Engine, do func(...string) string, stream string) {
	if strings.HasPrefix(do("XPENDING", stream, "g", "1-1", "1-1", "1"), "*1") {
		do("XCLAIM", stream, "g", "dead", "0", "1-1", "IDLE", "3600000", "RETRYCOUNT", "1", "JUSTID")
	} else {
		aged(do, stream, "1-1", "dead")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.targets {
		for _, p := range t.profiles {
			if t.stream == stream {
				e.setHot(p, &hit{id: "1-1", owner: "dead", count: 1, at: time.Now()})
			}
		}
	}
}

func runBlock(do func(...string) string, list [][]string) (replies string) {
	for _, args := range list {
		replies += do(args...)
	}
	return replies
}

// TestRestoreScriptGivesBackExactly runs the give-back on a real server, with and
// without the script.
func TestRestoreScriptGivesBackExactly(t *testing.T) {
	srv := redistest.Start(t)
	do := direct(t, srv, 2)
	do("ACL", "SETUSER", "plain", "on", ">plain", "~*", "+@all", "-eval")
	do("ACL", "SETUSER", "blind", "on", ">blind", "~*", "+@all", "-xinfo")
	for _, user := range []string{"", "plain", "blind"} {
		t.Run("user "+user, func(t *testing.T) {
			srv.Do("FLUSHALL")
			do("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
			for _, id := range []string{"1-1", "1-2", "1-3", "1-4"} {
				aged(do, "s", id, "dead")
			}
			e := realEngine(t, newRealUpstream(t, srv), nil)
			id := Identity{User: User{Name: user}, Proto: 2}
			p := &profile{target: &target{targetKey: targetKey{0, id.User, "s", "g"}}, minIdle: testMinIdle}
			cons := &consumer{consumerKey: consumerKey{0, id.User, "g", "w"}}
			listed, _ := parsePending([]byte(do("XPENDING", "s", "g", "-", "+", "9")))
			raw := []byte(do("XAUTOCLAIM", "s", "g", "w", testMinIdleMS, "-"))
			b, ok := newBatch(p, cons, id, raw, time.Now())
			if !ok || len(b.entries) != 4 {
				t.Fatalf("claimed %q", raw)
			}
			b.know(listed)
			do("XACK", "s", "g", "1-3")
			eventually(t, "a millisecond passes", func() bool { return time.Since(b.at) > 5*time.Millisecond })
			do("XCLAIM", "s", "g", "thief", "0", "1-2") // its idle time is the only guard without a script
			for range 2 {                               // the second time there is nothing left to do
				if err := e.restore(context.Background(), b); err != nil {
					t.Fatal(err)
				}
			}
			got, _ := parsePending([]byte(do("XPENDING", "s", "g", "-", "+", "9")))
			var lines []string
			for _, en := range got {
				lines = append(lines, fmt.Sprintf("%s %s %d %t", en.id, en.owner, en.count, en.idle >= time.Hour))
			}
			want := "1-1 dead 1 true, 1-2 thief 3 false, 1-4 dead 1 true"
			if s := strings.Join(lines, ", "); s != want {
				t.Errorf("pending %s, want %s", s, want)
			}
		})
	}
}

// TestDeletedConsumerStaysDeleted: what belonged to it stays with ours, but
// reclaimable.
func TestDeletedConsumerStaysDeleted(t *testing.T) {
	srv := redistest.Start(t)
	do := direct(t, srv, 2)
	do("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
	aged(do, "s", "1-1", "dead")
	e := realEngine(t, newRealUpstream(t, srv), nil)
	p := &profile{target: &target{targetKey: targetKey{0, User{}, "s", "g"}}, minIdle: testMinIdle}
	listed, _ := parsePending([]byte(do("XPENDING", "s", "g", "-", "+", "9")))
	raw := []byte(do("XAUTOCLAIM", "s", "g", "w", testMinIdleMS, "-"))
	b, _ := newBatch(p, &consumer{consumerKey: consumerKey{0, User{}, "g", "w"}}, Identity{Proto: 2}, raw, time.Now())
	b.know(listed)
	do("XGROUP", "DELCONSUMER", "s", "g", "dead")
	if err := e.restore(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	got, _ := parsePending([]byte(do("XPENDING", "s", "g", "-", "+", "9")))
	if len(got) != 1 || got[0].owner != "w" || got[0].count != 1 || got[0].idle < time.Hour {
		t.Errorf("pending %+v", got)
	}
	if strings.Contains(do("XINFO", "CONSUMERS", "s", "g"), "dead") {
		t.Error("the deleted consumer is back")
	}
}

// TestLeaseScripts runs the lease through its life on a real server.
func TestLeaseScripts(t *testing.T) {
	srv := redistest.Start(t)
	up := newRealUpstream(t, srv)
	a := realEngine(t, up, func(c *Config) { c.Instance = `a"\` })
	b := realEngine(t, up, func(c *Config) { c.Instance = "b" })
	w := &sweep{lease: "lease:{x}", interval: 10 * time.Second, minIdle: testMinIdle}
	ctx := context.Background()
	take := func(e *Engine) taken {
		t.Helper()
		got, err := e.take(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := take(a); !got.mine || got.report.At != 0 || got.server.IsZero() {
		t.Errorf("a free lease: %+v", got)
	}
	if got := take(b); got.mine || got.report.By != `a"\` || got.report.At != 0 {
		t.Errorf("a held lease: %+v", got)
	}
	srv.Do("RPUSH", w.backKey(), "s1", "s2")
	if got := take(a); !got.mine || len(got.hints) != 2 {
		t.Errorf("its own lease: %+v", got)
	}
	srv.Do("RPUSH", w.backKey(), "s3")
	r := report{By: a.cfg.Instance, Round: 7, At: 42, Hot: []hotLine{{1, "1-1", []byte("\xff\x00"), 2}}, Watched: [][2]int64{{3, 0}}}
	if ok, err := a.store(ctx, w, r, 2); !ok || err != nil {
		t.Errorf("store: %v %v", ok, err)
	}
	if got := srv.Do("LRANGE", w.backKey(), "0", "-1"); got != "*1\r\n$2\r\ns3\r\n" {
		t.Errorf("hints left: %q", got)
	}
	if ok, err := b.store(ctx, w, report{By: "b"}, 0); ok || err != nil {
		t.Errorf("store without the lease: %v %v", ok, err)
	}
	if got := take(b); got.mine || fmt.Sprint(got.report) != fmt.Sprint(r) {
		t.Errorf("read %+v, stored %+v", got.report, r)
	}
	w.written = true
	b.resign(ctx, w)
	if srv.Do("EXISTS", w.lease) != ":1\r\n" {
		t.Error("somebody else's lease was given up")
	}
	w.written = true
	a.resign(ctx, w)
	if srv.Do("EXISTS", w.lease) != ":0\r\n" {
		t.Error("the lease was not given up")
	}
}

// TestRoundsOnARealServer lets rounds find what a dead worker has left, for a user
// who may neither write leases nor run scripts.
func TestRoundsOnARealServer(t *testing.T) {
	srv := redistest.Start(t)
	do := direct(t, srv, 2)
	do("ACL", "SETUSER", "app", "on", ">app", "~jobs*", "~autoclaim*", "+@read", "+@write", "+@stream", "+@connection", "+multi", "+exec")
	names := []string{"jobs:1", "jobs:2", "jobs:3"}
	for _, s := range names {
		do("XGROUP", "CREATE", s, "g", "$", "MKSTREAM")
	}
	rounds := &tally{}
	change := func(c *Config) {
		c.Interval = time.Second
		c.Events.Round = func(r string) { rounds.add(r, 1) }
	}
	a := realEngine(t, newRealUpstream(t, srv), change)
	b := realEngine(t, newRealUpstream(t, srv), change)
	var clients []*testClient
	for i, e := range []*Engine{a, b} {
		c := newTestClient(t, e, newRealUpstream(t, srv), Identity{User: User{Name: "app"}, Proto: 2 + i})
		c.up = e.up
		clients = append(clients, c)
	}
	passes := func(c *testClient) (got []string) {
		c.do(readArgs("w", names)...)
		for _, s := range names {
			got = append(got, entriesOf(c.do("XAUTOCLAIM", s, "g", "w", "2000", "0-0", "COUNT", "10"))...)
		}
		return got
	}
	passes(clients[0])
	passes(clients[1])
	eventually(t, "one leads, one follows", func() bool {
		passes(clients[0])
		passes(clients[1])
		return rounds.of("led") > 1 && rounds.of("followed") > 1
	})
	do("XADD", names[1], "*", "k", "v")
	do(readArgs("dead", names)...)
	start := time.Now()
	var got []string
	eventually(t, "the entry is recovered", func() bool {
		got = append(passes(clients[0]), passes(clients[1])...)
		return len(got) > 0
	})
	if took := time.Since(start); took < 2*time.Second || took > 5*time.Second || len(got) != 1 {
		t.Errorf("%v after %v", got, took)
	}
	if n := rounds.of("failed") + rounds.of("denied"); n != 0 {
		t.Errorf("%d rounds failed", n)
	}
	if got := do("XPENDING", names[1], "g", "-", "+", "5"); !strings.HasSuffix(got, ":2\r\n") {
		t.Errorf("pending %q", got)
	}
}

// Any client can write what it likes under the names of a lease. What is too long to be ours is not
// read, and gone with the round.
func TestLeaseOfGarbage(t *testing.T) {
	srv := redistest.Start(t)
	e := realEngine(t, newRealUpstream(t, srv), func(c *Config) { c.Instance = "a" })
	w := &sweep{lease: "lease:{x}", interval: 10 * time.Second, minIdle: testMinIdle}
	ctx := context.Background()
	long := strings.Repeat("x", maxReport+1)
	srv.Do("SET", w.lease, long)
	srv.Do("RPUSH", w.backKey(), long, "s1")
	for range 2000 {
		srv.Do("RPUSH", w.backKey(), strings.Repeat("y", 2000))
	}
	got, err := e.take(ctx, w)
	if err != nil || !got.mine || got.report.At != 0 {
		t.Fatalf("the lease: %v %+v, %v", got.mine, got.report, err)
	}
	size := 0
	for _, h := range got.hints {
		size += len(h)
	}
	if len(got.hints) < 500 || got.hints[0] != "" || got.hints[1] != "s1" || size > 2<<20 {
		t.Errorf("%d hints of %d bytes", len(got.hints), size)
	}
	for n := 0; srv.Do("EXISTS", w.backKey()) == ":1\r\n"; n++ {
		if n > 10 {
			t.Fatal("the hints do not end")
		}
		if ok, err := e.store(ctx, w, report{By: "a", At: 1}, len(got.hints)); !ok || err != nil {
			t.Fatalf("store: %v, %v", ok, err)
		}
		if got, err = e.take(ctx, w); err != nil || !got.mine {
			t.Fatalf("take: %v, %v", got.mine, err)
		}
	}
	if ok, err := e.store(ctx, w, report{By: long}, 0); ok || !errors.Is(err, errLong) {
		t.Errorf("a report that nobody would read: %v, %v", ok, err)
	}
}

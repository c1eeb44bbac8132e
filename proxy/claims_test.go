package proxy

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/redistest"
)

// Who may have what is idle, and what another gives back.
func TestClaims(t *testing.T) {
	refusal := []byte("-ERR max number of clients reached\r\n")
	away := errors.New("away")
	for _, tt := range []struct {
		name          string
		claim         claim
		full, regular bool
		trouble       error
		idle, waiting int
		lends, again  bool
	}{
		{name: "a stranger that blocks", claim: claim{use: useHold}, idle: 1, lends: true},
		{name: "of a crowd", claim: claim{use: useHold}, idle: 1, waiting: 1},
		{name: "the last one, where regulars are", claim: claim{use: useHold}, regular: true, idle: 1},
		{name: "one of two, where regulars are", claim: claim{use: useHold}, regular: true, idle: 2, lends: true},
		{name: "where there is no room", claim: claim{use: useHold}, full: true, idle: 9},
		{name: "where dials fail", claim: claim{use: useHold}, trouble: away, idle: 1, waiting: 1, lends: true, again: true},
		{name: "where dials fail for want of room", claim: claim{use: useHold}, full: true, trouble: away, idle: 1},
		{name: "a stranger's transaction", claim: claim{use: useTransaction}, regular: true, idle: 1, waiting: 1, lends: true, again: true},
		{name: "where there is no room for it", claim: claim{use: useTransaction}, full: true, idle: 1},
		{name: "a moment's use", claim: claim{use: useBrief}, full: true, regular: true, idle: 1, waiting: 1, lends: true, again: true},
		{name: "a regular that blocks", claim: claim{regular: true, use: useHold}, full: true, regular: true, idle: 1, waiting: 1, lends: true, again: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := spares{room: new(room), trouble: tt.trouble, idle: make([]spare, tt.idle), waiting: make([]*waiter, tt.waiting)}
				if tt.full {
					s.room.refusal.Store(&refusal)
				}
				if tt.regular {
					s.regulars = time.Now()
				}
				if got := s.lends(tt.claim); got != tt.lends {
					t.Errorf("what is idle: %v", got)
				}
				if got := s.lendsAgain(tt.claim); got != tt.again {
					t.Errorf("what is given back: %v", got)
				}
			})
		})
	}
}

// What is given back while strangers wait to block is kept for the regulars; what is dialled is not, and
// where dials fail for another reason than want of room nothing is kept.
func TestGivenBackIsForRegulars(t *testing.T) {
	s := spares{room: new(room)}
	_, stranger := s.reserve((*spares).last, claim{use: useHold})
	_, another := s.reserve((*spares).last, claim{use: useHold})
	back, dialled := &batcher.Conn{}, &batcher.Conn{}
	s.push(back)
	if len(stranger.served) > 0 || s.len() != 1 {
		t.Error("a stranger got what a regular used")
	}
	s.add(dialled, true)
	if got, late := s.leave(stranger); !late || got.conn != dialled {
		t.Error("a stranger did not get what was dialled")
	}
	if c, _ := s.reserve((*spares).last, claim{regular: true, use: useHold}); c != back {
		t.Error("a regular did not get what was kept for it")
	}
	s.push(back)
	s.goOn(0, errors.New("away"))
	if got, late := s.leave(another); !late || got.conn != back {
		t.Error("a stranger waits though there is one and no other will come")
	}
}

// When clients that block have taken all the room that the server has, those who were served before go on,
// and who comes new hears what the server says and is closed.
func TestServerWithoutRoom(t *testing.T) {
	const refusal = "-ERR max number of clients reached\r\n"
	f := startFake(t)
	full := false
	f.script(func(c *fakeConn, args []string) (string, bool) {
		switch {
		case full && c.name == "":
			return refusal, true
		case args[0] == "MULTI":
			return "+OK\r\n", true
		case args[0] == "EXEC":
			return "*0\r\n", true
		}
		return "", false
	})
	p := startProxy(t, f, func(c *Config) { c.UpstreamWait = 50 * time.Millisecond })
	transaction := func(c *redistest.Client) {
		t.Helper()
		expect(t, c, "+OK\r\n", "MULTI")
		expect(t, c, "*0\r\n", "EXEC")
	}
	known := p.client()
	expect(t, known, bulkReply("a"), "GET", "a")
	transaction(known)
	transaction(known)
	until(t, "spares", func() bool { return p.Stats().PrivateIdle >= p.cfg.PrivateMinIdle })
	f.mu.Lock()
	full = true
	f.mu.Unlock()
	for _, command := range [][]string{{"AUTH", "alice", "right"}, {"BLPOP", "k", "0"}, {"SUBSCRIBE", "c"}, {"WATCH", "k"}, {"SELECT", "3"}, {"HELLO", "3"}} {
		c := p.client()
		expect(t, c, refusal, command...)
		expectEnd(t, c)
		transaction(known)
	}
	if !p.room.full() {
		t.Error("there is room")
	}
	f.mu.Lock()
	full = false
	f.mu.Unlock()
	until(t, "room for who comes new", func() bool {
		c := p.client()
		got, err := c.Do("WATCH", "k")
		return err == nil && got != refusal
	})
}

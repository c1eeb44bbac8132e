package proxy

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/redcon"

	"streamproxy/internal/redistest"
)

// Who has sent a part of a command is not read from at the limit, whether somebody is being
// refused or not. What is refused hears why, and the others are served to the end.
func TestPartsOfCommandsStayBelowTheLimit(t *testing.T) {
	const limit = 4 << 20
	t.Run("plain", func(t *testing.T) {
		f := startFake(t)
		f.script(func(_ *fakeConn, args []string) (string, bool) {
			if args[0] != "STRLEN" {
				return "", false
			}
			return fmt.Sprintf(":%d\r\n", len(args[1])), true
		})
		p := startProxy(t, f, func(c *Config) { c.MemoryLimit = limit })
		testPartsOfCommands(t, p.Proxy, p.client, 2*smallChunk, "*2\r\n$6\r\nSTRLEN\r\n", ":62000\r\n")
	})
	t.Run("TLS", func(t *testing.T) {
		s := startSecure(t, func(c *Config) { c.MemoryLimit = limit })
		const record = smallChunk // of what TLS keeps, which counts too
		testPartsOfCommands(t, s.Proxy, s.client, 2*smallChunk+record, "*2\r\n$6\r\nSTRLEN\r\n", ":0\r\n")
	})
}

func testPartsOfCommands(t *testing.T, p *Proxy, connect func() *redistest.Client, each int64, head, reply string) {
	const clients, whole, part = 200, 62000, 60000
	limit := p.cfg.MemoryLimit
	p.shedding.Lock() // nobody is refused for now
	var all []*redistest.Client
	for range clients {
		c := connect()
		all = append(all, c)
		go func() { _ = c.Send(head + fmt.Sprintf("$%d\r\n", whole) + strings.Repeat("x", part)) }() // ends with the connection
	}
	until(t, "most to wait", func() bool {
		if held := p.inBuffers(); held > limit+clients*each {
			t.Fatalf("%d bytes are held", held)
		}
		return p.lobby.waiting.Load() > clients-2*limit/part
	})
	p.shedding.Unlock()
	until(t, "the others to be read", func() bool { return p.lobby.waiting.Load() == 0 && p.inBuffers() <= limit })
	served := 0
	for _, c := range all {
		_ = c.Send(strings.Repeat("x", whole-part) + "\r\n") // who has been refused finds out
		switch got, err := c.ReadReply(); {
		case err == nil && got == reply:
			served++
		case err == nil && got != string(redcon.AppendError(nil, textMemory)):
			t.Errorf("got %q", got)
		}
		c.Close()
	}
	if least := int(limit / part / 4); served < least {
		t.Errorf("%d clients were served, want at least %d", served, least)
	}
	until(t, "nothing to be held", func() bool { return p.inBuffers() == 0 && p.ceded.Load() == 0 })
}

// What a refused session holds counts until its reader has dropped it, but nobody else is refused
// for it meanwhile. Such a reader reads no more.
func TestOnlyOneIsRefusedForTheRoom(t *testing.T) {
	f := startFake(t)
	var met *[numLimits]atomic.Int64
	p := startProxy(t, f, func(c *Config) {
		c.MemoryLimit = 1 << 20
		met = counted(c)
	})
	hold := func(n int) *session {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		s := newSession(p.Proxy, near)
		if !p.sessions.add(s, 10) {
			t.Fatal("not added")
		}
		s.noteHeld(n)
		return s
	}
	greedy, other := hold(900<<10), hold(200<<10)
	for range 3 {
		p.shed()
	}
	if n, held := met[LimitMemory].Load(), p.inBuffers(); n != 1 || held != 1100<<10 {
		t.Errorf("%d were refused, %d bytes are held", n, held)
	}
	greedy.noteHeld(0)
	if !greedy.ending || other.ending || p.inBuffers() != 200<<10 || p.excess(0) != 200<<10 {
		t.Errorf("ending: %v, %v; %d bytes are held", greedy.ending, other.ending, p.inBuffers())
	}
	other.noteHeld(0)
	p.sessions.remove(greedy)
	p.sessions.remove(other)
}

// A client that sends a command in pieces is read from while others wait for room, if it holds
// nothing yet; and who waits learns of room, of its own end, and of nothing else.
func TestLobby(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.MemoryLimit = 1 << 20 })
	p.shedding.Lock()
	defer p.shedding.Unlock()
	p.buffered.Add(2 << 20)
	half := redistest.Command("GET", "key")
	parted, gone := p.client(), p.client()
	for _, c := range []*redistest.Client{parted, gone} {
		if err := c.Send(half[:len(half)/2]); err != nil {
			t.Fatal(err)
		}
		s := p.sessionOf(t, c)
		until(t, "half a command to be held", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.holds > 0 })
		if err := c.Send(half[len(half)/2:]); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "both to wait", func() bool { return p.lobby.waiting.Load() == 2 })
	expect(t, p.client(), bulkReply("a"), "GET", "a")
	reset(gone)
	until(t, "one to end", func() bool { return p.lobby.waiting.Load() == 1 })
	if n := f.count("GET key"); n != 0 {
		t.Errorf("%d were read", n)
	}
	p.buffered.Add(-2 << 20)
	p.makeRoom()
	expectReply(t, parted, bulkReply("key"))
}

// What a reader keeps of where arguments lie counts while a command is not whole, and goes when all
// has been executed: thousands of clients may each have sent one command with many arguments.
func TestTablesOfArgumentsDoNotStay(t *testing.T) {
	const args = 9000
	f := startFake(t)
	p := startProxy(t, f, nil)
	c := p.client()
	s := p.sessionOf(t, c)
	command := redistest.Command(append([]string{"DEL"}, make([]string, args)...)...)
	_ = c.Send(command[:len(command)-1])
	least := int64(len(command) + args*16)
	until(t, "the command to be read", func() bool { return p.buffered.Load() >= least })
	_ = c.Send(command[len(command)-1:])
	if _, err := c.ReadReply(); err != nil {
		t.Fatal(err)
	}
	until(t, "the client to be waited for", s.parked.Load)
	s.mu.Lock() // the reader takes it too, before it drops the table at its end
	defer s.mu.Unlock()
	if n := s.scan.Extra(); n != 0 || p.buffered.Load() != 0 {
		t.Errorf("%d bytes are kept, %d count", n, p.buffered.Load())
	}
}

// A command that blocks counts for as long as it does, and its client is refused like any other
// that owes most.
func TestBlockedCommandsCount(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.MemoryLimit = 1 << 20 })
	c := p.client()
	_ = c.Send(redistest.Command("BLPOP", strings.Repeat("k", 40<<10), "0"))
	f.await(t, "BLPOP", 1)
	until(t, "the command to count", func() bool { return p.buffered.Load() >= 40<<10 })
	if by := p.sessionOf(t, c); p.unblockNow(t, by) {
		if got, err := c.ReadReply(); err != nil || got != "*-1\r\n" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	until(t, "it to count no more", func() bool { return p.buffered.Load() == 0 })

	var all []*redistest.Client
	for range 40 {
		all = append(all, p.client())
		expect(t, all[len(all)-1], bulkReply("a"), "GET", "a") // it is there
	}
	for _, c := range all {
		_ = c.Send(redistest.Command("BLPOP", strings.Repeat("k", 40<<10), "0")) // some are gone by now
	}
	until(t, "some to be refused", func() bool { p.shed(); return p.sessions.len() < 41 && p.inBuffers() <= p.cfg.MemoryLimit })
	if n := p.sessions.len(); n < 15 {
		t.Errorf("%d clients are left", n)
	}
}

// unblockNow has the server answer what a session is blocked in.
func (p *testProxy) unblockNow(t *testing.T, s *session) bool {
	t.Helper()
	other := p.client()
	got, err := other.Do("CLIENT", "UNBLOCK", fmt.Sprint(s.id))
	if err != nil || got != ":1\r\n" {
		t.Errorf("UNBLOCK: %q, %v", got, err)
		return false
	}
	return true
}

package proxy

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/redistest"
)

// queued is how many sessions wait for their turn.
func (t *strangers) queued() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.lanes {
		n += len(c.waiting)
	}
	return n
}

const usual = 20 * time.Millisecond // what is slow in these tests

// So many commands of strangers as may be under way are fewer where replies are slow, and more again where
// they are not.
func TestStrangersPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all strangers
		lane := new(batcher.Conn)
		round := func(took time.Duration) (n int) {
			for all.take(lane, 1, usual) {
				n++
			}
			for range n {
				all.give(lane, 1, took, usual)
			}
			return n
		}
		if got := round(time.Millisecond); got != firstStrangers {
			t.Errorf("%d at first, want %d", got, firstStrangers)
		}
		if got := round(time.Second); got <= firstStrangers {
			t.Errorf("%d where replies are fast, want more than %d", got, firstStrangers)
		}
		if got := round(time.Millisecond); got != fewStrangers {
			t.Errorf("%d where replies are slow, want %d", got, fewStrangers)
		}
		if got := round(time.Millisecond); got <= fewStrangers {
			t.Errorf("%d where they are fast again, want more than %d", got, fewStrangers)
		}
		for range manyStrangers {
			round(time.Millisecond)
		}
		if got := round(time.Millisecond); got != manyStrangers {
			t.Errorf("%d in the end, want %d", got, manyStrangers)
		}
		if len(all.lanes) != 0 {
			t.Error("a lane on which nothing is is remembered")
		}
	})
}

// A crowd that comes at once is not all sent before it shows how long its commands take.
func TestStrangersWhoComeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all strangers
		lane := new(batcher.Conn)
		come := func() (n int) {
			for all.take(lane, 1, usual) {
				n++
			}
			return n
		}
		if !all.take(lane, 1, usual) {
			t.Fatal("the first has to wait")
		}
		time.Sleep(usual - slowReply + promptReply + 1)
		if got := come(); got != fewStrangers-1 {
			t.Errorf("%d behind one that is late, want %d", got, fewStrangers-1)
		}
		all.give(lane, 1, time.Millisecond, usual)
		if got := come(); got != firstStrangers-fewStrangers+1 {
			t.Errorf("%d behind one that was answered, want %d", got, firstStrangers-fewStrangers+1)
		}
	})
}

// While nothing is answered for long nobody more is let in, however few are under way; what has not
// been sent after all is no answer.
func TestStrangersBehindASlowCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all strangers
		lane, other := new(batcher.Conn), new(batcher.Conn)
		for range 2 {
			if !all.take(lane, 1, usual) {
				t.Fatal("one of two has to wait")
			}
		}
		time.Sleep(usual + 1)
		all.give(lane, 1, 0, usual)
		if all.take(lane, 1, usual) {
			t.Error("one is let in behind a slow command")
		}
		if !all.take(other, 1, usual) {
			t.Error("one has to wait on another lane")
		}
		came := make(chan bool, 2)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { came <- all.wait(ctx, lane, 1) }()
		synctest.Wait()
		go func() { came <- all.wait(t.Context(), lane, fewStrangers+1) }()
		synctest.Wait()
		cancel()
		if <-came {
			t.Error("who has left had its turn")
		}
		all.give(lane, 1, usual+2, usual)
		if !<-came {
			t.Error("who stood behind it has no turn, though nothing is under way")
		}
	})
}

// Clients that reset their connections while what strangers have sent is not answered leave the queue, and
// nothing of theirs is executed, whatever reclaim thinks of it. One that stays is served.
func TestStrangersThatReset(t *testing.T) {
	for name, words := range map[string][]string{
		"plain":   {"GET", "slow"},
		"watched": {"XAUTOCLAIM", "s", "g", "c", "1999", "0", "COUNT", "1000"},
	} {
		t.Run(name, func(t *testing.T) { testStrangersThatReset(t, words) })
	}
}

func testStrangersThatReset(t *testing.T, words []string) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	known := p.client()
	settle(t, p, known)
	slow := true // the server's mu
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		return "", slow && args[0] == words[0] && args[1] == words[1]
	})
	const crowd = firstStrangers + 20
	var clients []*redistest.Client
	for range crowd {
		c := p.client()
		if err := c.Send(redistest.Command(words...)); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	h := p.hubOf(p.defaultKey())
	defer p.leaveHub(h)
	until(t, "some to wait, and the others' commands", func() bool {
		q := h.strangers.queued()
		return q > 0 && q+p.Stats().InFlight == crowd
	})
	asks(t, known, "k") // waits for nobody
	for _, c := range clients {
		reset(c)
	}
	until(t, "all to leave the queue", func() bool { return h.strangers.queued() == 0 })
	late := p.client()
	if err := late.Send(redistest.Command("GET", "k")); err != nil {
		t.Fatal(err)
	}
	until(t, "a new client to wait", func() bool { return h.strangers.queued() == 1 })
	f.mu.Lock()
	slow = false
	executed := 0
	for _, line := range f.seen {
		if line == strings.Join(words, " ") {
			executed++
		}
	}
	f.mu.Unlock()
	if executed > firstStrangers {
		t.Errorf("%d of %d commands were executed", executed, crowd)
	}
	f.cut("")
	expectReply(t, late, bulkReply("k"))
	until(t, "nothing to be left", func() bool { return p.Stats().Clients == 2 })
	h.strangers.mu.Lock()
	defer h.strangers.mu.Unlock()
	if len(h.strangers.lanes) != 0 {
		t.Error("places were not given back")
	}
}

package proxy

import (
	"errors"
	"io"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// What the server never answers is told to its clients as what it is, before they are
// closed: in flight, blocked, behind a blocked command.
func TestShutdownTellsWhatIsLost(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.DrainTimeout = 50 * time.Millisecond })
	until(t, "spares", func() bool { return p.Stats().PrivateIdle == 2 })
	expect(t, p.client(), bulkReply("a"), "GET", "a")
	f.setMute(true)
	get, pop := p.client(), p.client()
	get.SendCommand("GET", "a")
	pop.Send(redistest.Command("BLPOP", "k", "0") + redistest.Command("GET", "behind"))
	p.awaitInFlight(2)
	outcome := make(chan bool, 1)
	go func() { outcome <- p.Shutdown(t.Context()) }()
	for c, want := range map[*redistest.Client][]string{
		get: {string(replyUnknown)},
		pop: {string(replyUnknown), string(replyStopping)},
	} {
		for _, w := range want {
			if got, err := c.ReadReply(); err != nil || got != w {
				t.Errorf("got %q, %v; want %q", got, err, w)
			}
		}
		expectEnd(t, c)
		c.Close()
	}
	if <-outcome {
		t.Error("clean, with commands unanswered")
	}
}

// goOn sends a command again and again, each when the one before was answered, and
// returns the last reply and how the connection ended.
func goOn(c *redistest.Client, args ...string) (last string, err error) {
	for {
		reply, err := c.Do(args...)
		if err != nil {
			return last, err
		}
		last = reply
	}
}

// A client that never stops is served until the time is over, and then told that its
// command was not sent before it finds the connection closed.
func TestShutdownOfWhoGoesOn(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.DrainIdle, c.DrainTimeout = 2*time.Second, 300*time.Millisecond })
	c := p.client()
	expect(t, c, bulkReply("a"), "GET", "a")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer c.Close()
		if last, err := goOn(c, "GET", "a"); last != string(replyStopping) {
			t.Errorf("the last reply is %q, then %v", last, err)
		}
	}()
	if clean, took := p.shut(t.Context()); clean || took < 300*time.Millisecond {
		t.Errorf("clean %v after %v", clean, took)
	}
	<-done
}

// Blocked commands with short timeouts, one after the other, are no more in flight than
// one with a long timeout. Whoever sends another to a proxy that is leaving hears so.
func TestShutdownDoesNotWaitForPollers(t *testing.T) {
	f := startFake(t)
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		return "*-1\r\n", args[0] == "BLPOP"
	})
	p := startProxy(t, f, func(c *Config) { c.DrainIdle, c.DrainTimeout = 100*time.Millisecond, time.Hour })
	c := p.client()
	c.SendCommand("BLPOP", "k", "0.01")
	f.await(t, "BLPOP", 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer c.Close()
		if got, err := c.ReadReply(); err != nil || got != "*-1\r\n" {
			t.Errorf("got %q, %v", got, err)
		}
		last, err := goOn(c, "BLPOP", "k", "0.01")
		if last != "*-1\r\n" && last != string(replyStopping) || !errors.Is(err, io.EOF) {
			t.Errorf("the last reply is %q, then %v", last, err)
		}
	}()
	if clean, took := p.shut(t.Context()); !clean || took > patience {
		t.Errorf("clean %v after %v", clean, took)
	}
	<-done
}

// A drain that has less time than clients are given to be quiet is clean where they said
// nothing.
func TestShutdownOfTheSilentInLittleTime(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.DrainIdle, c.DrainTimeout = time.Hour, 50*time.Millisecond })
	c := p.client()
	expect(t, c, bulkReply("a"), "GET", "a")
	c.Close()
	if clean, _ := p.shut(t.Context()); !clean {
		t.Error("not clean")
	}
}

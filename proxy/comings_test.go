package proxy

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
)

// A crowd of users of whom each comes once does not take the connections from who comes again and
// again: that one is served over the same as before.
func TestWhoComesBackKeepsItsPlace(t *testing.T) {
	for _, tt := range []struct {
		name  string
		move  []string
		same  upstream.Key
		lanes int // that the crowd may have
	}{
		{"user", []string{"AUTH", "alice", "right"}, upstream.Key{Proto: 2}, 10 * maxUnused},
		{"database", []string{"SELECT", "7"}, upstream.Key{Proto: 2, DB: 7}, maxUnused / 2},
		{"protocol", []string{"HELLO", "3"}, upstream.Key{Proto: 3}, 10 * maxUnused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := startAsked(t)
			p := startProxy(t, a.fakeServer, func(c *Config) { c.MaxLanes = tt.lanes })
			visit := func(move ...string) {
				c := p.client()
				if err := c.SendCommand(move...); err != nil {
					t.Fatal(err)
				}
				if _, err := c.ReadReply(); err != nil {
					t.Fatal(err)
				}
				expect(t, c, bulkReply("k"), "GET", "k")
				c.Close()
				until(t, "the client to have left", func() bool { return p.Stats().Clients == 0 })
			}
			place := func() *hub {
				i := slices.IndexFunc(p.unusedHubs(), func(h *hub) bool {
					return h.key.DB == tt.same.DB && h.key.Proto == tt.same.Proto && (h.key.User.Name == "alice") == (tt.name == "user")
				})
				if i < 0 {
					return nil
				}
				return p.unusedHubs()[i]
			}
			visit(tt.move...)
			visit(tt.move...)
			before := place()
			if before == nil || !before.connected() {
				t.Fatal("the place is not kept")
			}
			for n := range 2 * maxUnused {
				visit("AUTH", fmt.Sprint("user", n), "right")
			}
			if place() != before || !before.connected() {
				t.Error("the place is lost to a crowd")
			}
		})
	}
}

// What counts is the last but one coming: who came often once goes before who comes now.
func TestByComings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list []*hub
		came := func(name string, ago ...time.Duration) {
			h := &hub{key: upstream.Key{User: upstream.User{Name: name}}}
			start := time.Now()
			for _, d := range ago {
				time.Sleep(time.Minute - d - time.Since(start))
				h.comings.note()
			}
			list = append(list, h)
		}
		came("often, before", 50*time.Second, 49*time.Second, 48*time.Second, 47*time.Second)
		came("once", time.Second)
		came("now", 20*time.Second, 10*time.Second, time.Second)
		came("once, left later", time.Second)
		var got []string
		for _, h := range byComings(list) {
			got = append(got, h.key.User.Name)
		}
		if want := []string{"once", "once, left later", "often, before", "now"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// Clients that come at least twice within a second are as good as there, for as long as they do.
func TestComingsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c comings
		check := func(again, there bool) {
			t.Helper()
			if c.again() != again || c.there() != there {
				t.Errorf("back %v, there %v; want %v, %v", c.again(), c.there(), again, there)
			}
		}
		check(false, false)
		c.note()
		check(false, false)
		time.Sleep(thereWithin / 2)
		c.note()
		check(true, true)
		time.Sleep(thereWithin / 2)
		check(true, false)
		c.forget()
		c.note()
		check(false, false)
	})
}

// A lane is not taken from who comes all the time, and from a stranger before others.
func TestLanesOfWhoComesBack(t *testing.T) {
	a := startAsked(t)
	p := startProxy(t, a.fakeServer, nil)
	for n, user := range []string{"alice", "bob", "stranger"} {
		c := p.client()
		expect(t, c, "+OK\r\n", "AUTH", user, "right")
		expect(t, c, bulkReply("k"), "GET", "k")
		c.Close()
		p.left(n + 1)
	}
	hubs := p.unusedHubs()
	alice, bob, stranger := hubs[0], hubs[1], hubs[2]
	alice.comings.before.Store(time.Now().Add(time.Hour).UnixNano()) // she has come just now, however slow this test is
	bob.comings.before.Store(1)
	for _, want := range []*hub{stranger, bob} {
		if !p.discardLane() {
			t.Fatal("no lane is given up")
		}
		if !want.dropped.Load() {
			t.Errorf("another gave up its lane than %s", want.key.User.Name)
		}
	}
	if p.discardLane() || alice.dropped.Load() {
		t.Error("the lane is taken from who comes all the time")
	}
}

// The question whether the credentials are right yet of a user to whose place clients have come back
// is asked before those of a crowd. Who has been refused is a stranger again.
func TestWhoComesBackIsAskedAboutFirst(t *testing.T) {
	a := startAsked(t)
	p := startProxy(t, a.fakeServer, nil)
	for n := range 2 {
		c := p.client()
		expect(t, c, "+OK\r\n", "AUTH", "alice", "right")
		expect(t, c, bulkReply("k"), "GET", "k")
		c.Close()
		p.left(1)
		until(t, "the client to have left", func() bool { return p.Stats().Clients == 0 })
		if alice := p.identities.user("alice", "right"); p.comesBack(alice) != (n == 1) {
			t.Fatalf("known after %d comings: %v", n+1, n == 0)
		}
	}
	send := func(n int, user, password string) (c *redistest.Client) {
		for range n {
			c = p.client()
			if err := c.SendCommand("AUTH", user, password); err != nil {
				t.Fatal(err)
			}
		}
		return c
	}
	send(maxProvers, "slow", "x")
	a.await(t, "AUTH slow", maxProvers)
	const crowd = 10
	send(crowd, "slow", "x")
	until(t, "the crowd to wait", func() bool { return p.waitingForTurns() == crowd })
	alice := send(1, "alice", "right")
	until(t, "alice to wait", func() bool { return p.waitingForTurns() == crowd+1 })
	a.answerOne()
	if got, err := alice.ReadReply(); err != nil || got != "+OK\r\n" {
		t.Fatalf("%q, %v", got, err)
	}
	if n := a.count("AUTH slow"); n > maxProvers+1 {
		t.Errorf("%d of the crowd before her", n-maxProvers)
	}
	alice.Close()
	p.left(1)
	user := p.identities.user("alice", "right")
	p.forgetComings(user)
	if p.comesBack(user) {
		t.Error("known yet after a refusal")
	}
}

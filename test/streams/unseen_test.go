//go:build streams

package streams

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// acks are the ways in which a client can ack an entry.
var acks = map[string]func(c *client, id string){
	"inline": func(c *client, id string) {
		if err := c.Send("XACK s1 g " + id + "\r\n"); err != nil {
			c.t.Fatal(err)
		}
		if got := c.reply(); got != ":1\r\n" {
			c.t.Fatalf("got %q", got)
		}
	},
	"script": func(c *client, id string) {
		c.gets(":1\r\n", "EVAL", "return redis.call('XACK', KEYS[1], 'g', ARGV[1])", "1", "s1", id)
	},
	"script in a transaction": func(c *client, id string) {
		got := c.all([]string{"MULTI"}, []string{"EVAL", "return redis.call('XACK', 's1', 'g', ARGV[1])", "0", id}, []string{"EXEC"})
		if got[2] != "*1\r\n:1\r\n" {
			c.t.Fatalf("got %q", got)
		}
	},
	"watched": func(c *client, id string) {
		c.gets("+OK\r\n", "WATCH", "k")
		c.gets(":1\r\n", "XACK", "s1", "g", id)
	},
	"step by step": func(c *client, id string) {
		c.gets("+OK\r\n", "MULTI")
		c.gets("+QUEUED\r\n", "XACK", "s1", "g", id)
		c.gets("*1\r\n:1\r\n", "EXEC")
	},
	"tracked": func(c *client, id string) {
		c.gets("+OK\r\n", "CLIENT", "TRACKING", "ON")
		c.gets(":1\r\n", "XACK", "s1", "g", id)
	},
	"large": func(c *client, id string) {
		c.gets(":1\r\n", append([]string{"XACK", "s1", "g", id}, oldIDs(1000, 9000)...)...)
	},
}

// What is held for a consumer is not handed out once somebody has acked it, however that came.
func TestAckedInAnyWayWhileHeld(t *testing.T) {
	for name, ack := range acks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, other, _ := holding(t)
			ack(other, "2-1")
			c.gets(nothingClaimed, claimCommand("s1", "g", "c", minIdleMillis, "10")...)
		})
	}
}

// A consumer that is deleted takes nothing along of what is held for it.
func TestDeletedInAnyWayWhileHeld(t *testing.T) {
	for name, before := range map[string][]string{"tracked": {"CLIENT", "TRACKING", "ON"}, "watched": {"WATCH", "k"}, "script": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, other, at := holding(t)
			if before != nil {
				other.gets("+OK\r\n", before...)
				other.gets(":0\r\n", "XGROUP", "DELCONSUMER", "s1", "g", "c")
			} else {
				other.gets(":0\r\n", "EVAL", "return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], 'g', 'c')", "1", "s1")
			}
			if p := at.pendings("s1", "g"); len(p) != 1 || p[0].owner != "dead" || p[0].count != 1 {
				t.Errorf("pending %+v", p)
			}
		})
	}
}

// Whose entry it was before finds it where it was: in its history, with the consumer when that is
// deleted, in the streams that are taken elsewhere.
func TestFoundByThePreviousOwnerWhileHeld(t *testing.T) {
	for name, look := range map[string]func(t *testing.T, other, at *client){
		"history": func(t *testing.T, other, _ *client) {
			got := other.ask("XREADGROUP", "GROUP", "g", "dead", "STREAMS", "s1", "0")
			if !strings.Contains(got, "2-1") {
				t.Errorf("got %q", got)
			}
		},
		"deleted": func(t *testing.T, other, at *client) {
			other.gets(":1\r\n", "XGROUP", "DELCONSUMER", "s1", "g", "dead")
			if p := at.pendings("s1", "g"); len(p) != 0 {
				t.Errorf("pending %+v", p)
			}
		},
		"copied": func(t *testing.T, other, at *client) {
			other.gets(":1\r\n", "COPY", "s1", "s2")
			if p := at.pendings("s2", "g"); len(p) != 1 || p[0].owner != "dead" || p[0].count != 1 {
				t.Errorf("pending %+v", p)
			}
		},
		"moved": func(t *testing.T, other, at *client) {
			other.gets(":1\r\n", "MOVE", "s1", "1")
			at.gets("+OK\r\n", "SELECT", "1")
			if p := at.pendings("s1", "g"); len(p) != 1 || p[0].owner != "dead" || p[0].count != 1 {
				t.Errorf("pending %+v", p)
			}
		},
		"shown": func(t *testing.T, other, _ *client) {
			if got := other.ask("XINFO", "CONSUMERS", "s1", "g"); !strings.Contains(got, "dead\r\n$7\r\npending\r\n:1\r\n") {
				t.Errorf("got %q", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, other, at := holding(t)
			look(t, other, at)
		})
	}
}

// holding is a proxy that holds entry 2-1 of s1 for consumer c. It returns the consumer's connection,
// another one, and one to the server.
func holding(t *testing.T) (c, other, at *client) {
	t.Helper()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	at, c, other = direct(t, s), f.client(), f.client()
	list := []string{"s0", "s1"}
	groups(at, "g", list)
	c.learn("g", "c", minIdleMillis, list...)
	for i, stream := range list {
		deliver(at, stream, "g", "dead", time.Hour, fmt.Sprint(i+1, "-1"))
	}
	for _, stream := range list {
		c.state(stream, "g", "hot")
	}
	if got := c.ask(claimCommand("s0", "g", "c", minIdleMillis, "10")...); !strings.Contains(got, "1-1") {
		t.Fatalf("got %q", got)
	}
	return c, other, at
}

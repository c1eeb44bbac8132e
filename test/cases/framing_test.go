//go:build cases

package cases

import (
	"fmt"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/proxy"
)

// An error line without a space, in the same segment as a neighbour's reply or cut in the middle,
// once made a proxy look for the end of the error in the neighbour's reply.
func TestCase01ErrorWithoutSpace(t *testing.T) {
	t.Parallel()
	u := startFake(t)
	// Scripts share the lane of a server that is not known only by the operator's word.
	f := startProxy(t, u.addr, func(c *proxy.Config) { c.SharedCommands = []string{"eval"} })
	c1, c2 := f.client(), f.client()
	meetOnLane(f, u, c1, c2)
	const replies = "-nospace\r\n$3\r\nfoo\r\n"
	for cut := range len(replies) {
		c1.sends(redistest.Command("EVAL", "s", "0"))
		u.next("EVAL", "s", "0")
		c2.sends(redistest.Command("GET", "k"))
		r := u.next("GET", "k")
		_ = r.answer(replies[:cut])
		if cut > 0 {
			<-time.After(2 * time.Millisecond) // most likely read by then; the result is the same either way
		}
		if err := r.answer(replies[cut:]); err != nil {
			t.Fatal(err)
		}
		c1.replies("-nospace\r\n")
		c2.replies(bulk("foo"))
	}
}

// A status nested in an array was taken for the end of the reply, and shifted all that followed.
func TestCase02StatusInArray(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	startProxy(t, s.Addr()).everyListener(t, func(t *testing.T, addr string) {
		for _, proto := range []string{"2", "3"} {
			c := connect(t, addr)
			c.ask("HELLO", proto)
			c.sends(redistest.Command("SET", "k", "v") +
				redistest.Command("EVAL", "return {'ro', redis.status_reply('OK')}", "0") +
				redistest.Command("EVAL", "return {redis.error_reply('E x'), {}, {{redis.status_reply('')}}}", "0") +
				redistest.Command("GET", "k"))
			c.replies("+OK\r\n", "*2\r\n$2\r\nro\r\n+OK\r\n", "*3\r\n-E x\r\n*0\r\n*1\r\n*1\r\n+\r\n", bulk("v"))
		}
	})
}

// Empty bulk strings inside a pipeline made a proxy lose count.
func TestCase07EmptyBulk(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	startProxy(t, s.Addr()).everyListener(t, func(t *testing.T, addr string) {
		c := connect(t, addr)
		c.sends(redistest.Command("DEL", "a", "h") +
			redistest.Command("SET", "a", "") + redistest.Command("GET", "a") +
			redistest.Command("HSET", "h", "f", "") + redistest.Command("HGET", "h", "f") +
			redistest.Command("SET", "", "") + redistest.Command("GET", "") + redistest.Command("DEL", "") +
			redistest.Command("GET", "nothing") + redistest.Command("ECHO", "end"))
		c.reply()
		c.replies("+OK\r\n", "$0\r\n\r\n", ":1\r\n", "$0\r\n\r\n", "+OK\r\n", "$0\r\n\r\n", ":1\r\n", "$-1\r\n", bulk("end"))
		c.silent()
	})
}

// sweep is the pipeline that is cut at every byte, with the replies it must get.
var (
	sweep        = redistest.Command("SET", "a", "") + redistest.Command("GET", "a")
	sweepReplies = "+OK\r\n$0\r\n\r\n"
)

// A command cut between two reads, at whatever byte, is the same command. Between the halves a
// neighbour is served on the same lane, so the first half has been read before the second comes.
func TestCase08RequestCutAtEveryByte(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	f.everyListener(t, func(t *testing.T, addr string) {
		c, neighbour := connect(t, addr), connect(t, addr)
		for cut := range len(sweep) {
			c.sends(sweep[:cut])
			neighbour.gets(bulk(fmt.Sprint(cut)), "ECHO", fmt.Sprint(cut))
			c.sends(sweep[cut:])
			c.replies("+OK\r\n", "$0\r\n\r\n")
		}
		c.silent()
	})
}

// A reply cut at every byte is the same reply, for its owner and for the next in line.
func TestCase08ReplyCutAtEveryByte(t *testing.T) {
	t.Parallel()
	u := startFake(t)
	f := startProxy(t, u.addr)
	c, neighbour := f.client(), f.client()
	meetOnLane(f, u, c, neighbour)
	for cut := range len(sweepReplies) {
		c.sends(sweep)
		u.next("SET", "a", "")
		u.next("GET", "a")
		neighbour.sends(redistest.Command("GET", "n"))
		r := u.next("GET", "n")
		_ = r.answer(sweepReplies[:cut])
		<-time.After(2 * time.Millisecond) // most likely read by then; the result is the same either way
		if err := r.answer(sweepReplies[cut:] + bulk("neighbour")); err != nil {
			t.Fatal(err)
		}
		c.replies("+OK\r\n", "$0\r\n\r\n")
		neighbour.replies(bulk("neighbour"))
	}
}

// One byte a write, in both directions, before and behind the proxy.
func TestCase08OneByteAtATime(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	behind := startLink(t, s.Addr())
	behind.SplitEvery(1)
	f := startProxy(t, behind.Addr())
	before := startLink(t, f.tcp)
	before.SplitEvery(1)
	c, neighbour := connect(t, before.Addr()), f.client()
	for i := range 20 {
		c.sends(sweep)
		neighbour.gets(bulk(fmt.Sprint("n", i)), "ECHO", fmt.Sprint("n", i))
		c.replies("+OK\r\n", "$0\r\n\r\n")
	}
	c.silent()
}

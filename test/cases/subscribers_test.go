//go:build cases

package cases

import (
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// A push of 16 KiB tore the reply it overtook. Messages just below, at and above that size arrive
// between the replies of a client that asks all the time, each frame whole.
func TestCase06PushesDoNotTearReplies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	value := strings.Repeat("v", 20_000)
	s.Do("SET", "k", value)
	publisher := f.client()
	f.everyListener(t, func(t *testing.T, addr string) {
		eventually(t, "nobody listens from before", func() bool {
			return s.Do("PUBSUB", "NUMSUB", "c") == "*2\r\n"+bulk("c")+integer(0)
		})
		c := connect(t, addr)
		if got := c.ask("HELLO", "3"); got[0] != '%' {
			t.Fatalf("HELLO 3: %.80q", got)
		}
		c.gets(">3\r\n"+bulk("subscribe")+bulk("c")+":1\r\n", "SUBSCRIBE", "c")
		for _, size := range []int{16383, 16384, 16385, 100, 70_000} {
			message := strings.Repeat("m", size)
			const rounds = 20
			pushed, answered := 0, 0
			for range rounds {
				c.sends(redistest.Command("GET", "k"))
				publisher.gets(":1\r\n", "PUBLISH", "c", message)
				c.sends(redistest.Command("GET", "k"))
			}
			for pushed+answered < 3*rounds {
				switch got := c.reply(); got {
				case bulk(value):
					answered++
				case ">3\r\n" + bulk("message") + bulk("c") + bulk(message):
					pushed++
				default:
					t.Fatalf("message of %d bytes: a frame that is neither, %.60q", size, got)
				}
			}
			if pushed != rounds {
				t.Errorf("message of %d bytes: %d pushes, want %d", size, pushed, rounds)
			}
		}
		c.silent()
		_ = c.Close()
	})
}

// Three channels are acknowledged three times, and what is pipelined with them keeps its place and
// its form, which a subscriber's PING has of its own in RESP2. All is compared with the server's.
func TestCase26SubscribeInAPipeline(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	for _, commands := range [][][]string{
		{{"SUBSCRIBE", "a", "b", "c"}, {"PING"}},
		{{"PING"}, {"SUBSCRIBE", "a", "b", "c"}, {"PING", "x"}, {"GET", "k"}, {"UNSUBSCRIBE"}, {"PING"}},
		{{"HELLO", "3"}, {"SUBSCRIBE", "a", "b", "c"}, {"PING"}, {"GET", "k"}, {"PSUBSCRIBE", "a*"}, {"UNSUBSCRIBE", "b"}, {"PING"}},
		{{"SSUBSCRIBE", "a"}, {"SUBSCRIBE", "b"}, {"SUNSUBSCRIBE"}, {"RESET"}, {"PING"}, {"SELECT", "1"}, {"GET", "k"}},
		{{"UNSUBSCRIBE"}, {"PUNSUBSCRIBE", "a", "b"}, {"GET", "k"}},
		{{"SUBSCRIBE", "a"}, {"QUIT"}},
	} {
		c, direct := f.client(), connect(t, s.Addr())
		for _, each := range []*client{c, direct} {
			each.sends(pipeline(commands...) + redistest.Command("QUIT"))
		}
		got, want := withoutID(untilEnd(c)), withoutID(untilEnd(direct))
		if got != want {
			t.Errorf("%v:\n got %q\nwant %q", commands, got, want)
		}
		if len(want) < 20 {
			t.Errorf("%v: the server itself said only %q", commands, want)
		}
	}
}

// withoutID cuts the client's id out of HELLO's reply.
func withoutID(text string) string {
	before, rest, found := strings.Cut(text, "$2\r\nid\r\n:")
	if !found {
		return text
	}
	_, after, _ := strings.Cut(rest, "\r\n")
	return before + after
}

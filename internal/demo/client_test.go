package demo

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// scripted returns a client whose server answers each command with the next reply.
func scripted(replies ...string) (*client, func()) {
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() { // ends with either end of the pipe
		defer close(done)
		buf := make([]byte, 512)
		for _, r := range replies {
			if _, err := far.Read(buf); err != nil {
				return
			}
			_, _ = io.WriteString(far, r)
		}
		_ = far.Close()
	}()
	m := new(meter)
	m.reset()
	return newClient(near, m, "k", 1), func() {
		_ = near.Close()
		<-done
	}
}

func TestClientChecksReplies(t *testing.T) {
	good := "$64\r\nk" + strings.Repeat(" ", 63) + "\r\n"
	for reply, want := range map[string]string{
		good:                               "",
		"$-1\r\n":                          `reply "$-1\r\n" instead of`,
		"-ERR no\r\n":                      `reply "-ERR no\r\n" instead of`,
		"+OK\r\n":                          `reply "+OK\r\n" instead of`,
		strings.Replace(good, "k", "x", 1): "instead of",
		good[:20]:                          "unexpected EOF",
		"":                                 "EOF",
		"$64":                              "EOF",
	} {
		c, end := scripted(reply)
		err := c.do(c.get, c.got)
		end()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("reply %.30q: error %v, want %q", reply, err, want)
		}
	}
}

// The pauses are random; the number of commands in a long time is not.
func TestClientPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const commands = 10000
		c, end := scripted(strings.Split(strings.Repeat("$64\r\nk"+strings.Repeat(" ", 63)+"\r\n|", commands), "|")...)
		defer end()
		c.set, c.stored = c.get, c.got
		ctx, cancel := context.WithTimeout(t.Context(), commands*thinkTime/2)
		defer cancel()
		if err := c.run(ctx); err != nil {
			t.Fatal(err)
		}
		got := c.meter.total().latency.TotalCount()
		if got < commands/2*9/10 || got > commands/2*11/10 {
			t.Errorf("%d commands in the time of %d pauses", got, commands/2)
		}
	})
}

func TestClientStopsAtAWrongReply(t *testing.T) {
	c, end := scripted("+OK\r\n", "+OK\r\n")
	defer end()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.run(ctx); err == nil || !strings.Contains(err.Error(), "instead of") {
		t.Errorf("error %v", err)
	}
}

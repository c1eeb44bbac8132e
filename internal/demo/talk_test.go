package demo

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"streamproxy/internal/resp"
)

// answering returns a talk whose peer sends a text, a byte at a time, and hangs up.
func answering(t *testing.T, text string) *talk {
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() { // ends with either end of the pipe
		defer close(done)
		defer far.Close()
		if _, err := far.Read(make([]byte, 512)); err != nil {
			return
		}
		for _, b := range []byte(text) {
			if _, err := far.Write([]byte{b}); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		near.Close()
		<-done
	})
	return newTalk(near)
}

func TestTalk(t *testing.T) {
	v, err := answering(t, "*2\r\n$3\r\nabc\r\n*1\r\n:7\r\n").do("PING")
	if err != nil || string(v.Elems[0].Text) != "abc" || string(v.Elems[1].Elems[0].Text) != "7" {
		t.Errorf("%+v, %v", v, err)
	}
	commands := resp.AppendCommand(resp.AppendCommand(nil, "GET", "a"), "GET", "b")
	if v, err := answering(t, "$1\r\na\r\n$1\r\nb\r\n").all(commands, 2); err != nil || string(v.Text) != "b" {
		t.Errorf("%+v, %v", v, err)
	}
	for text, want := range map[string]string{
		"-ERR no\r\n": `answered with "ERR no"`,
		"$3\r\nab":    "EOF",
		"?\r\n":       "unknown reply type",
	} {
		if _, err := answering(t, text).do("PING"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := answering(t, "+OK\r\n-ERR no\r\n").all(commands, 2); err == nil {
		t.Error("the second reply is an error and was passed over")
	}
}

// A talk that waits ends with its context, and that is no fault.
func TestTalkWithin(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	ctx, cancel := context.WithCancel(t.Context())
	talk := newTalk(near)
	over := talk.within(ctx)
	defer over()
	go func() { // ends when the command was read
		_, _ = far.Read(make([]byte, 512))
		cancel()
	}()
	_, err := talk.do("BLPOP", "k", "0")
	if err == nil {
		t.Fatal("a reply came from nowhere")
	}
	if err := ended(ctx, err); err != nil {
		// net.Pipe has an error of its own for a closed end.
		if !strings.Contains(err.Error(), io.ErrClosedPipe.Error()) {
			t.Errorf("the end of the context is a fault: %v", err)
		}
	}
}

package redistest

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestReadReply(t *testing.T) {
	replies := []string{
		"+OK\r\n", "-ERR no\r\n", ":1\r\n", "$3\r\na\r\n\r\n", "$0\r\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n",
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123\r\n", "!3\r\nERR\r\n", "=5\r\ntxt:a\r\n",
		"%1\r\n+a\r\n*1\r\n:1\r\n", "~2\r\n+a\r\n+b\r\n", ">2\r\n+a\r\n+b\r\n", "|1\r\n+a\r\n:1\r\n$1\r\nb\r\n", "%0\r\n",
	}
	near, far := net.Pipe()
	go func() {
		for b := range strings.SplitSeq(strings.Join(replies, ""), "") {
			_, _ = io.WriteString(far, b)
		}
		_, _ = io.WriteString(far, "$5\r\nab")
		_ = far.Close()
	}()
	c := NewClient(near)
	for _, want := range replies {
		if got, err := c.ReadReply(); got != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	if got, err := c.ReadReply(); got != "$5\r\nab" || err == nil {
		t.Errorf("a torn reply: %q, %v", got, err)
	}
}

func TestReadReplyRefuses(t *testing.T) {
	for _, raw := range []string{"x\r\n", "+OK\n", "\r\n", "$x\r\n", "?1\r\n"} {
		near, far := net.Pipe()
		go func() { _, _ = io.WriteString(far, raw) }()
		if got, err := NewClient(near).ReadReply(); err == nil {
			t.Errorf("%q was read as %q", raw, got)
		}
		_ = near.Close()
		_ = far.Close()
	}
}

func TestClientTimeout(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	c := NewClient(near)
	c.Timeout = time.Millisecond
	if _, err := c.ReadReply(); err == nil {
		t.Error("a read of nothing ended without error")
	}
	if err := c.SendCommand("PING"); err == nil {
		t.Error("a write that nobody reads ended without error")
	}
}

func TestCommand(t *testing.T) {
	if got := Command("SET", "k", ""); got != "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n" {
		t.Errorf("got %q", got)
	}
}

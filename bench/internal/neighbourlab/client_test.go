package neighbourlab

import (
	"io"
	"net"
	"strings"
	"testing"
)

// answering is a client whose other side answers every write with the next of the replies, and
// ends after them.
func answering(t *testing.T, replies ...string) *client {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	go func() {
		defer far.Close()
		b := make([]byte, 4096)
		for _, reply := range replies {
			if _, err := far.Read(b); err != nil {
				return
			}
			if _, err := io.WriteString(far, reply); err != nil {
				return
			}
		}
	}()
	return &client{conn: near}
}

func TestAsk(t *testing.T) {
	c := answering(t, "$5\r\nhello\r\n", "*2\r\n$1\r\na\r\n:1\r\n+OK\r\n", "-ERR no\r\n")
	if err := c.ask("$5\r\nhello", "GET", "k"); err != nil {
		t.Error(err)
	}
	if err := c.ask("*2", "BLPOP", "k", "5"); err != nil || string(c.rest) != "+OK\r\n" {
		t.Errorf("%v, and behind the reply %q", err, c.rest)
	}
	c.rest = nil
	if err := c.ask("+OK", "SET", "k", "v"); err == nil || !strings.Contains(err.Error(), `SET was answered "-ERR no`) {
		t.Errorf("a refusal: %v", err)
	}
	if err := c.ask("+OK", "PING"); err == nil {
		t.Error("nobody was there, and answered")
	}
}

func TestLoadFailsWithTheServersError(t *testing.T) {
	if err := answering(t, "+OK\r\n+OK\r\n").load(encode("SET a b", "SET c d")); err != nil {
		t.Error(err)
	}
	if err := answering(t, "+OK\r\n-ERR full\r\n").load(encode("SET a b", "SET c d")); err == nil || !strings.Contains(err.Error(), "ERR full") {
		t.Errorf("%v", err)
	}
	if err := answering(t).load([]byte("*1\r\n$4\r\nPI")); err == nil {
		t.Error("half a command was sent")
	}
}

func TestCount(t *testing.T) {
	whole := encode("PING", "SET a b")
	tests := []struct {
		in             string
		commands, rest int
		fails          bool
	}{
		{"", 0, 0, false},
		{string(whole), 2, 0, false},
		{string(whole[:len(whole)-1]), 1, len(whole) - len(encode("PING")) - 1, false},
		{"PING\r\n", 1, 0, false},
		{"*1\r\n+4\r\n", 0, 8, true},
	}
	for _, tt := range tests {
		commands, rest, err := count([]byte(tt.in))
		if commands != tt.commands || rest != tt.rest || (err != nil) != tt.fails {
			t.Errorf("%q: %d commands, %d bytes more, %v", tt.in, commands, rest, err)
		}
	}
}

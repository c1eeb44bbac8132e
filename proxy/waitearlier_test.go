package proxy

import (
	"strings"
	"testing"
	"time"

	"streamproxy/internal/resp"
)

// Of two replies the smaller numbers are told, each on its own; an error is not touched.
func TestLesserReply(t *testing.T) {
	for _, c := range [][3]string{
		{"", ":2\r\n", ":2\r\n"},
		{":1\r\n", ":2\r\n", ":1\r\n"},
		{":12\r\n", ":0\r\n", ":0\r\n"},
		{"*2\r\n:1\r\n:0\r\n", "*2\r\n:0\r\n:3\r\n", "*2\r\n:0\r\n:0\r\n"},
		{":0\r\n", "-ERR no\r\n", "-ERR no\r\n"},
	} {
		var a []byte
		if c[0] != "" {
			a = []byte(c[0])
		}
		if got := string(lesser(a, []byte(c[1]))); got != c[2] {
			t.Errorf("of %q and %q: %q", c[0], c[1], got)
		}
	}
}

// What is left of a WAIT's time is at least a millisecond, and for ever stays for ever.
func TestRemainingTime(t *testing.T) {
	for line, want := range map[string]string{
		"WAIT 1 200":      "WAIT 1 150",
		"WAIT 1 20":       "WAIT 1 1",
		"WAIT 1 0":        "WAIT 1 0",
		"WAIT 1 x":        "WAIT 1 x",
		"WAIT 1 -1":       "WAIT 1 -1",
		"WAIT x 20":       "WAIT x 1",
		"WAIT":            "WAIT",
		"WAITAOF 0 1 200": "WAITAOF 0 1 150",
		"WAITAOF 0 1 20":  "WAITAOF 0 1 1",
	} {
		cmd := remaining(words(line), 50*time.Millisecond)
		if got := plainWords(cmd); got != want {
			t.Errorf("%s: %s left, want %s", line, got, want)
		}
	}
}

// Who has no time left asks for nothing that the server would refuse, or not refuse.
func TestAtOnce(t *testing.T) {
	for line, want := range map[string]string{
		"WAIT 1 1": "WAIT 0 1", "WAIT x 1": "WAIT x 1", "WAIT 1 0": "WAIT 1 0", "WAIT 1": "WAIT 1", "WAITAOF 1 1 1": "WAITAOF 1 1 1",
	} {
		if got := plainWords(atOnce(words(line))); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func plainWords(cmd resp.Command) string {
	var list []string
	for i := range cmd.Len() {
		list = append(list, string(cmd.Arg(i)))
	}
	return strings.Join(list, " ")
}

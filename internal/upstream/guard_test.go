package upstream

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"streamproxy/internal/resp"
)

// What the server sends in answer to two commands, how much of it may be read, and whether
// reading then fails for good.
var guardTests = []struct {
	name, sent string
	passed     int
	refused    bool
}{
	{"two answers", "+PONG\r\n$2\r\nab\r\n", 15, false},
	{"RESP2", "*3\r\n:1\r\n$-1\r\n*-1\r\n-ERR x\r\n", 26, false},
	{"RESP3", "%2\r\n+a\r\n,1.5\r\n+b\r\n~3\r\n#t\r\n_\r\n(12345\r\n=5\r\ntxt:a\r\n", 48, false},
	{"empty", "*0\r\n$0\r\n\r\n", 10, false},
	{"a long string", "$7000000\r\n" + strings.Repeat("\n", 7_000_000) + "\r\n", 7_000_012, false},
	{"incomplete", "+PONG\r\n$2\r\na", 7, false},
	{"one too many", "+PONG\r\n+PONG\r\n+OK\r\n", 14, true},
	{"negative length", "+PONG\r\n$-5\r\n", 7, true},
	{"negative count", "%-1\r\n", 0, true},
	{"no type", "HTTP/1.1 400 Bad Request\r\n", 0, true},
	{"no float", ",x\r\n", 0, true},
	{"no end", "$1\r\nabc", 0, true},
	{"a push", ">3\r\n+subscribe\r\n+a\r\n:1\r\n", 0, true},
	{"an attribute", "|1\r\n+a\r\n+b\r\n+PONG\r\n", 0, true},
	{"a string in chunks", "$?\r\n;1\r\na\r\n;0\r\n", 0, true},
	{"an array without count", "*?\r\n+a\r\n.\r\n", 0, true},
	{"a reply in a line", "+a\n+b\r\n", 0, true},
	{"a line of LF", "+\n\r\n", 0, true},
	{"an impossible count", "*9223372036854775807\r\n", 0, true},
	{"an impossible map", "%4611686018427387905\r\n", 0, true},
	{"a large count", "*1000000000\r\n", 0, true},
	{"a large map", "%2000000000\r\n", 0, true},
	{"a large string", "$2000000000\r\n", 0, true},
	{"many values", "*1048577\r\n" + strings.Repeat("_\r\n", 1_048_577), 0, true},
	{"a long line", "+" + strings.Repeat("a", maxControlLine) + "\r\n", 0, true},
	{"an endless line", "-ERR " + strings.Repeat("a", maxControlReply), 0, true},
	{"deep", strings.Repeat("*1\r\n", maxControlDepth-1) + "_\r\n", 4*(maxControlDepth-1) + 3, false},
	{"too deep", strings.Repeat("*1\r\n", maxControlDepth) + "_\r\n", 0, true},
	{"endlessly deep", strings.Repeat("*1\r\n", maxControlReply/4), 0, true},
}

func TestGuard(t *testing.T) {
	for _, tt := range guardTests {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{len(tt.sent), 5} {
				if len(tt.sent)/size > 1000 {
					continue
				}
				near, far := net.Pipe()
				g := guarded(near)
				done := make(chan struct{})
				go func() {
					defer close(done)
					play(far, tt.sent, size)
				}()
				for range 2 {
					if _, err := g.Write(resp.AppendCommand(nil, "PING")); err != nil {
						t.Fatal(err)
					}
				}
				got, err := io.ReadAll(g)
				_ = near.Close()
				<-done
				if string(got) != tt.sent[:tt.passed] || errors.Is(err, errControlReply) != tt.refused {
					t.Errorf("in parts of %d: read %d bytes, %v; want %d, refused %v", size, len(got), err, tt.passed, tt.refused)
				}
				if _, again := g.Read(make([]byte, 1)); tt.refused && !errors.Is(again, errControlReply) {
					t.Errorf("then reads on: %v", again)
				}
			}
		})
	}
}

// play swallows two commands, sends text in parts of size bytes, and leaves.
func play(c net.Conn, text string, size int) {
	defer func() { _ = c.Close() }()
	if _, err := io.ReadFull(c, make([]byte, 2*len("*1\r\n$4\r\nPING\r\n"))); err != nil {
		return
	}
	for len(text) > 0 {
		n := min(size, len(text))
		if _, err := io.WriteString(c, text[:n]); err != nil {
			return
		}
		text = text[n:]
	}
}

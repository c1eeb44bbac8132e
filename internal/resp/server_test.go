package resp

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// startRedis returns the socket of a server of the test's own. The binary is
// sought first, so that a missing one ends the test before anything is started.
func startRedis(t *testing.T, opts ...redistest.Option) string {
	t.Helper()
	redistest.Binary(t)
	return redistest.Start(t, opts...).Socket()
}

// ask sends in over a connection of its own, ends the sending side, and returns
// all that the server had to say: it answers what it has read before it looks at
// the end, so the answer is complete without waiting. That holds for answers that
// one write takes; who expects more lets in end with QUIT instead.
func ask(t *testing.T, sock string, in []byte) string {
	t.Helper()
	c, err := net.Dial("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(in); err != nil {
		t.Fatalf("%.40q: %v", in, err)
	}
	if !bytes.HasSuffix(in, []byte("QUIT\r\n")) {
		c.(*net.UnixConn).CloseWrite()
	}
	out, err := io.ReadAll(c)
	if err != nil && len(out) == 0 {
		t.Fatalf("%.40q: %v", in, err)
	}
	return string(out)
}

// refusal splits what a server said into the number of ordinary replies and the
// protocol error behind them, "" if there is none.
func refusal(t *testing.T, said string) (replies int, reason string) {
	t.Helper()
	var s ReplyScanner
	for len(said) > 0 {
		n, done, err := s.Scan([]byte(said))
		if err != nil || !done {
			t.Fatalf("reply %q: %v %v", said, done, err)
		}
		if r, ok := strings.CutPrefix(said[:n], "-ERR Protocol error: "); ok {
			return replies, strings.TrimSuffix(r, "\r\n")
		}
		replies++
		said = said[n:]
	}
	return replies, ""
}

// judge says the same of the scanner: commands to execute, and the refusal.
func judge(in []byte, l Limits) (commands int, reason string) {
	s := NewCommandScanner(l)
	for len(in) > 0 {
		n, done, err := s.Scan(in)
		if err != nil {
			return commands, err.(*ProtocolError).Reason
		}
		if in = in[n:]; done && len(s.Args()) > 0 {
			commands++
		}
	}
	return commands, ""
}

// What Redis executes we execute, what it refuses we refuse in its words, at the
// same place of the stream, wherever the stream is cut.
func TestAgainstRedis(t *testing.T) {
	sock := startRedis(t)
	var all []string
	for _, c := range goodCommands {
		all = append(all, c.in+"*1\r\n$4\r\nPING\r\n")
	}
	for _, c := range badCommands {
		all = append(all, c.in, "PING\r\n"+c.in)
	}
	for _, in := range all {
		for cut := 1; cut <= len(in); cut++ {
			b := []byte(in[:cut])
			replies, theirs := refusal(t, ask(t, sock, b))
			commands, ours := judge(b, DefaultLimits())
			if replies != commands || theirs != "" && ours != theirs {
				t.Errorf("%q: Redis %d %q, scanner %d %q", b, replies, theirs, commands, ours)
			}
			if _, final := judge([]byte(in), DefaultLimits()); ours != "" && ours != final {
				t.Errorf("%q: refused as %q when cut, as %q when whole", b, ours, final)
			}
		}
		_, theirs := refusal(t, ask(t, sock, []byte(in)))
		if _, ours := judge([]byte(in), DefaultLimits()); ours != theirs {
			t.Errorf("%q: Redis %q, scanner %q", in, theirs, ours)
		}
	}
}

// A line that is too long is refused at the same byte.
func TestLongLinesAgainstRedis(t *testing.T) {
	sock := startRedis(t)
	for _, c := range longCommands {
		for _, in := range []string{c.in, c.in[:len(c.in)-1]} {
			_, theirs := refusal(t, ask(t, sock, []byte(in)))
			if _, ours := judge([]byte(in), DefaultLimits()); ours != theirs {
				t.Errorf("%.20q of %d bytes: Redis %q, scanner %q", in, len(in), theirs, ours)
			}
		}
	}
}

// The deviations of CommandScanner are as its comment lists them: Redis does not
// refuse these. A Redis that does would be reason to drop the deviation.
func TestStricterThanRedis(t *testing.T) {
	sock := startRedis(t)
	for _, c := range strictCommands {
		if _, theirs := refusal(t, ask(t, sock, []byte(c.in))); theirs != "" {
			t.Errorf("%q: Redis refuses it too: %q", c.in, theirs)
		}
	}
}

func TestPreAuthAgainstRedis(t *testing.T) {
	sock := startRedis(t, redistest.WithPassword("secret"))
	for _, in := range []string{
		"*10\r\n", "*11\r\n", "*2147483647\r\n", "*2147483648\r\n", "*-1\r\n",
		"*1\r\n$16384\r\n", "*1\r\n$16385\r\n", "*1\r\n$536870912\r\n", "*1\r\n$536870913\r\n", "*1\r\n$-1\r\n",
		"PING\r\n*11\r\n",
	} {
		replies, theirs := refusal(t, ask(t, sock, []byte(in)))
		if commands, ours := judge([]byte(in), PreAuthLimits()); ours != theirs || commands != replies {
			t.Errorf("%q: Redis %d %q, scanner %d %q", in, replies, theirs, commands, ours)
		}
	}
}

// Redis and AppendInline split the same lines into the same words. A script that
// returns its arguments shows what Redis made of them.
func TestInlineAgainstRedis(t *testing.T) {
	sock := startRedis(t)
	tails := make([]string, 0, 2500)
	for _, c := range inlineCases {
		tails = append(tails, c.line)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{`"`, `'`, `\`, " ", "\t", "\v", "\f", "\r", "x", "4", "f", "n", "a", "\xff", `\x4f`, `\"`, `\'`, `" `, `' `}
	for range 2000 {
		var tail strings.Builder
		for range rnd.IntN(10) {
			tail.WriteString(alphabet[rnd.IntN(len(alphabet))])
		}
		tails = append(tails, tail.String())
	}
	for _, tail := range tails {
		line := `EVAL "return ARGV" 0 ` + tail
		theirs := ask(t, sock, []byte(line+"\r\n"))
		out, spans, err := AppendInline(nil, nil, []byte(line))
		ours := fmt.Sprintf("-ERR %v\r\n", err)
		if err == nil {
			var args [][]byte
			for _, s := range spans[3:] {
				args = append(args, out[s.Start:s.End])
			}
			ours = string(AppendCommandBytes(nil, args...))
		}
		if ours != theirs {
			t.Errorf("%q: Redis %q, splitter %q", tail, theirs, ours)
		}
	}
}

// Replies of a real server, all in one stream, are found one by one.
func TestRepliesOfRedis(t *testing.T) {
	sock := startRedis(t)
	commands := []struct {
		line string
		kind byte
	}{
		{"PING", '+'}, {"NOSUCH", '-'}, {"INCR n", ':'}, {"GET nothing", '$'}, {"LRANGE nothing 0 -1", '*'},
		{`EVAL "return {'ro', redis.status_reply('OK'), {1, {}}, false}" 0`, '*'}, {"COMMAND", '*'},
		{"HELLO 3", '%'}, {"GET nothing", '_'}, {"DEBUG PROTOCOL attrib", '-'}, {"HSET h f v", ':'}, {"HGETALL h", '%'},
		{"SADD s a b", ':'}, {"SMEMBERS s", '~'}, {"ZADD z 1.5 m", ':'}, {"ZSCORE z m", ','}, {"INFO", '='},
		{`EVAL "redis.setresp(3); return {big_number={1}}" 0`, '*'}, {`EVAL "redis.setresp(3); return {double=3.5}" 0`, ','},
		{`EVAL "redis.setresp(3); return true" 0`, '#'}, {"SUBSCRIBE c", '>'}, {"COMMAND", '*'}, {"HELLO 2", '*'}, {"QUIT", '+'},
	}
	var in []byte
	for _, c := range commands {
		in = append(in, c.line+"\r\n"...)
	}
	said := ask(t, sock, in)
	var s ReplyScanner
	for i, c := range commands {
		n, done, err := s.Scan([]byte(said))
		if !done || err != nil || s.Kind() != c.kind {
			t.Fatalf("reply %d to %q: kind %q, want %q, %v %v", i, c.line, s.Kind(), c.kind, done, err)
		}
		said = said[n:]
	}
	if said != "" {
		t.Errorf("unasked replies: %.100q", said)
	}
}

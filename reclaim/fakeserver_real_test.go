package reclaim

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// TestFakeServerIsLikeTheRealOne says the same to both and compares every reply.
// Idle times and the time itself differ and are not compared.
func TestFakeServerIsLikeTheRealOne(t *testing.T) {
	srv := redistest.Start(t)
	do := direct(t, srv, 2)
	f := newFakeServer()
	idle := regexp.MustCompile(`(\$\d+\r\n[a-z]+\r\n):\d+\r\n`)
	script := func(lines ...string) {
		for _, line := range lines {
			args := strings.Fields(line)
			for i, a := range args {
				switch a {
				case "TAKE":
					args[i] = takeScript
				case "STORE":
					args[i] = storeScript
				case "RESIGN":
					args[i] = resignScript
				case "RESTORE":
					args[i] = restoreScript
				case "BODY":
					args[i] = releaseBody
				case "SHA":
					args[i] = lockSHAs[scriptRelease]
				}
			}
			want := idle.ReplaceAllString(do(args...), "$1:IDLE\r\n")
			f.mu.Lock()
			got := idle.ReplaceAllString(f.do(args), "$1:IDLE\r\n")
			f.mu.Unlock()
			if strings.HasPrefix(want, "-") { // texts differ; who asks looks at the code
				want, got = errorCode([]byte(want)), errorCode([]byte(got))
			}
			if strings.HasPrefix(line, "EVAL TAKE") && strings.HasPrefix(want, "*5") {
				want, got = want[:40], got[:40]
			}
			if got != want {
				t.Errorf("%s:\n the model says %q\n the server    %q", line, got, want)
			}
		}
	}
	script(
		"XGROUP CREATE s g $ MKSTREAM", "XADD s 1-1 k v", "XADD s 1-2 k v", "XADD s 2-1 k v",
		"XREADGROUP GROUP g a COUNT 2 STREAMS s >", "XREADGROUP GROUP g b STREAMS s >", "XREADGROUP GROUP g b STREAMS s >",
		"XREADGROUP GROUP none b STREAMS s >", "XPENDING s g - + 10", "XPENDING s g (1-1 + 1", "XPENDING s g - 1 10",
		"XPENDING s g IDLE 60000 - + 10", "XPENDING s none - + 10",
		"XCLAIM s g c 60000 1-1", "XCLAIM s g c 0 1-1", "XCLAIM s g a 0 1-1 IDLE 100000 RETRYCOUNT 1 JUSTID", "XCLAIM s g a 0 9-9",
		"XPENDING s g IDLE 60000 - + 10", "XAUTOCLAIM s g d 60000 0-0 COUNT 1", "XAUTOCLAIM s g d 60000 0-0", "XPENDING s g - + 10",
		"XAUTOCLAIM s g d 0 0-0 COUNT 1", "XAUTOCLAIM s g d 60000 "+maxID+" COUNT 1", "XAUTOCLAIM s none d 60000 0-0",
		"MULTI", "XPENDING s g - + 1", "XAUTOCLAIM s g e 0 1-2 COUNT 1", "EXEC",
		"XACK s g 1-1 5-5", "XACK s none 1-1",
		"XADD d 1-1 k v", "XADD d 1-2 k v", "XADD d 1-3 k v", "XGROUP CREATE d g 0", "XREADGROUP GROUP g a STREAMS d >",
		"XDEL d 1-1 1-2 9-9", "XCLAIM d g b 0 1-1", "XPENDING d g - + 10", "XAUTOCLAIM d g b 0 0-0", "XPENDING d g - + 10",
		"XGROUP DELCONSUMER d g b", "XPENDING d g - + 10", "XGROUP DESTROY d g", "XGROUP DESTROY d g", "XPENDING d g - + 10",
		"RENAME d e", "RENAME d e", "DEL e none",
		"EVAL RESTORE 1 s g e 0 1-2 a 2 100000 2-1 b 7 5", "XPENDING s g - + 10", "XPENDING s g IDLE 90000 - + 10",
		"EVAL RESTORE 1 s none e 0 1-2 a 2 100000",
		"SET l t NX PX 60000", "SET l u NX PX 60000", "GET l", "GET none", "SCRIPT EXISTS SHA", "EVALSHA SHA 1 l t",
		"SCRIPT LOAD BODY", "SCRIPT EXISTS SHA", "EVALSHA SHA 1 l u", "EVALSHA SHA 1 l t", "GET l",
		`EVAL TAKE 2 L L:back {"by":"a" 60000`, `EVAL TAKE 2 L L:back {"by":"b" 60000`, "RPUSH L:back s1 s2 s3",
		`EVAL TAKE 2 L L:back {"by":"a" 60000`, `EVAL STORE 2 L L:back {"by":"b" 60000 {"by":"b"} 0`,
		`EVAL STORE 2 L L:back {"by":"a" 60000 {"by":"a","n":1} 2`, `EVAL TAKE 2 L L:back {"by":"b" 60000`,
		`EVAL RESIGN 2 L L:back {"by":"b"`, `EVAL RESIGN 2 L L:back {"by":"a"`, `EVAL RESIGN 2 L L:back {"by":"a"`,
	)
}

// TestParkedReplyIsTheServersOwnShape compares what a parked reader is given with a
// read of a fresh entry, in both versions of the protocol.
func TestParkedReplyIsTheServersOwnShape(t *testing.T) {
	srv := redistest.Start(t)
	for _, proto := range []int{2, 3} {
		srv.Do("FLUSHALL")
		do := direct(t, srv, proto)
		up := newRealUpstream(t, srv)
		e := realEngine(t, up, nil)
		c := newTestClient(t, e, up, Identity{Proto: proto})
		for _, s := range []string{"s", "x"} {
			do("XGROUP", "CREATE", s, "g", "$", "MKSTREAM")
		}
		c.do(readArgs("w", []string{"s", "x"})...)
		c.do(claimArgs("s", "w")...)
		c.do(claimArgs("s", "w")...)
		do("XADD", "s", "1-1", "k", "v")
		want := do(readArgs("dead", []string{"s", "x"})...)
		do("XCLAIM", "s", "g", "dead", "0", "1-1", "IDLE", "3600000", "RETRYCOUNT", "1", "JUSTID")
		heat(e, do, "s")
		e.mu.Lock()
		for _, t := range e.targets {
			t.asked = time.Time{}
		}
		e.mu.Unlock()
		v := c.s.Command(scanCommand([]byte(commandOf(readArgs("w", []string{"s", "x"}, "BLOCK", "1")...))))
		o := v.Parked.Nil(t.Context(), []byte("*-1\r\n"))
		if string(o.Reply) != want || o.Handout == nil {
			t.Errorf("RESP%d: %q, the server says %q", proto, o.Reply, want)
		}
	}
}

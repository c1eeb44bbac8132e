package reclaim

import (
	"strings"
	"testing"
	"time"

	"streamproxy/internal/resp"
)

func TestParseClaim(t *testing.T) {
	for line, want := range map[string]*claimCall{
		"XAUTOCLAIM s g c 5000 0-0":                    {"s", "g", "c", 5 * time.Second, "0-0", 100},
		"xautoclaim s g c 5000 - count 7":              {"s", "g", "c", 5 * time.Second, "-", 7},
		"XAUTOCLAIM s g c 5000 5-1 Count 1":            {"s", "g", "c", 5 * time.Second, "5-1", 1},
		"XAUTOCLAIM s g c 5000 0 JUSTID":               nil,
		"XAUTOCLAIM s g c 5000 0 COUNT 5 JUSTID":       nil,
		"XAUTOCLAIM s g c 5000 0 COUNT 0":              nil,
		"XAUTOCLAIM s g c 5000 0 COUNT -1":             nil,
		"XAUTOCLAIM s g c 5000 0 COUNT 99999999999":    nil,
		"XAUTOCLAIM s g c 5000 0 LIMIT 5":              nil,
		"XAUTOCLAIM s g c -1 0":                        nil,
		"XAUTOCLAIM s g c soon 0":                      nil,
		"XAUTOCLAIM s g c +5000 0":                     nil,
		"XAUTOCLAIM s g c 05000 0":                     nil,
		"XAUTOCLAIM s g c 5000 0 COUNT +5":             nil,
		"XAUTOCLAIM s g c 99999999999999999999 0":      nil,
		"XAUTOCLAIM s g c 9223372036854775807 0":       nil,
		"XAUTOCLAIM s g c":                             nil,
		"XAUTOCLAIM s g c 5000 0 COUNT 5 COUNT 6 more": nil,
	} {
		got, ok := parseClaim(scanCommand([]byte(commandOf(strings.Fields(line)...))))
		if ok != (want != nil) || ok && got != *want {
			t.Errorf("%s: %+v %v", line, got, ok)
		}
	}
}

func TestParseLock(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"SET k t NX":           0,
		"SET k t PX 1500 NX":   1500 * time.Millisecond,
		"set k t nx px 1500":   1500 * time.Millisecond,
		"SET k t EX 2 NX":      2 * time.Second,
		"SET k t":              -1,
		"SET k t PX 1500":      -1,
		"SET k t NX NX":        -1,
		"SET k t NX PX":        -1,
		"SET k t NX PX 0":      -1,
		"SET k t NX PX -5":     -1,
		"SET k t NX PX +5":     -1,
		"SET k t NX PX 05":     -1,
		"SET k t NX KEEPTTL":   -1,
		"SET k t PX 1 EX 1 NX": -1,
	} {
		got, ok := parseLock(scanCommand([]byte(commandOf(strings.Fields(line)...))))
		if ok != (want >= 0) || ok && (got.ttl != want || string(got.key) != "k" || string(got.token) != "t") {
			t.Errorf("%s: %+v %v", line, got, ok)
		}
	}
}

func TestParseScript(t *testing.T) {
	for line, want := range map[string]lockScript{
		"EVALSHA " + lockSHAs[scriptRelease] + " 1 k t":                     scriptRelease,
		"EVALSHA " + strings.ToUpper(lockSHAs[scriptExtend]) + " 1 k t 5 0": scriptExtend,
		"EVALSHA " + lockSHAs[scriptReacquire] + " 1 k t 5":                 scriptReacquire,
		"EVALSHA " + lockSHAs[scriptRelease] + " 2 k t":                     noScript,
		"EVALSHA " + lockSHAs[scriptRelease] + " 1 k":                       noScript,
		"EVALSHA abc 1 k t": noScript,
	} {
		got, ok := parseScript(scanCommand([]byte(commandOf(strings.Fields(line)...))))
		if ok != (want != noScript) || ok && got.script != want {
			t.Errorf("%s: %+v %v", line, got, ok)
		}
	}
}

func TestInteresting(t *testing.T) {
	e := &Engine{}
	command := func(args ...string) resp.Command { return scanCommand([]byte(commandOf(args...))) }
	for _, name := range []string{"EvalSha", "script", "XAUTOCLAIM", "xreadgroup", "xack", "XDEL", "xackdel", "XDELEX",
		"xclaim", "XNACK", "xgroup", "del", "UNLINK", "rename", "RENAMENX", "FlushAll", "flushdb", "XPending"} {
		if !e.Interesting(command(name, "key")) {
			t.Errorf("%s is not", name)
		}
	}
	for _, name := range []string{"", "GETS", "MGET", "INCR", "XADD", "XREAD", "EVAL", "XRANGE", "EXPIREAT", "\x00ET", "get", "SET"} {
		if e.Interesting(command(name, "key")) {
			t.Errorf("%s is, of a key that is no lock's", name)
		}
	}
	if e.Interesting(command("GET")) {
		t.Error("a GET of nothing is")
	}
	e.locks.add("autoclaim:g:s", nil)
	for _, name := range []string{"get", "SET"} {
		if !e.Interesting(command(name, "autoclaim:g:s")) {
			t.Errorf("%s of a lock is not", name)
		}
		if e.Interesting(command(name, "key")) {
			t.Errorf("%s beside a lock is", name)
		}
	}
	claim := command("XAUTOCLAIM", "s", "g", "c", "1000", "0-0")
	if n := testing.AllocsPerRun(100, func() { e.Interesting(claim) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestOrdinaryTrafficCostsNothing: GET and SET of keys that are no locks.
func TestOrdinaryTrafficCostsNothing(t *testing.T) {
	inWorld(t, 1, nil, func(w *world) {
		c := w.known("s")
		for _, args := range [][]string{{"GET", "key"}, {"SET", "key", "value"}, {"XACK", "s", "g", "1-1"}, {"DEL", "key", "other"}} {
			cmd := scanCommand([]byte(commandOf(args...)))
			if n := testing.AllocsPerRun(100, func() {
				if v := c.s.Command(cmd); v.Action != Forward {
					w.t.Fatal(v)
				}
			}); n != 0 {
				w.t.Errorf("%v: %v allocations", args, n)
			}
		}
	})
}

func TestSetsOfStreamsAreNamedApart(t *testing.T) {
	if setKey([]string{"a\x00b"}) == setKey([]string{"a", "b"}) || setKey([]string{"1:a"}) == setKey([]string{"", "a"}) {
		t.Error("two sets have one name")
	}
	if setKey([]string{"b", "a", "b"}) != setKey([]string{"a", "b"}) {
		t.Error("one set has two names")
	}
}

func TestIDsAreCompared(t *testing.T) {
	for _, pair := range [][2]string{{"1-1", "1-2"}, {"1-9", "2-0"}, {"9-0", "10-0"}, {"5", "5-1"}, {"x", "1-0"}} {
		if !lessID(pair[0], pair[1]) || lessID(pair[1], pair[0]) {
			t.Errorf("%v", pair)
		}
	}
	if lessID("1-1", "1-1") {
		t.Error("an id is less than itself")
	}
}

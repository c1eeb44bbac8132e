//go:build streams

package streams

import (
	"fmt"
	"strings"
	"testing"
)

// autoclaim is a script that asks for abandoned entries.
const autoclaim = "return redis.call('XAUTOCLAIM', KEYS[1], 'g', 'c', '2000', '0-0', 'COUNT', '1')"

// oddForms are ways to ask for entries, new and abandoned, that no known library uses, each of them
// sent in one write. They are sent in this order, and each finds what those before it have left.
var oddForms = [][][]string{
	{{"xautoclaim", "s", "g", "c", "2000", "0", "cOuNt", "1"}},
	{{"XAUTOCLAIM", "s", "g", "c", "2000", "-", "COUNT", "1", "JUSTID"}},
	{{"XAUTOCLAIM", "s", "g", "c", "2000", "0-0", "JUSTID", "COUNT", "1"}},
	{{"XAUTOCLAIM", "next", "g", "c", "2000", "0-0", "justid", "count", "1"}},
	{{"XAUTOCLAIM", "s", "g", "c", "2000", "0-0", "COUNT", "2", "COUNT", "1"}},
	{{"XAUTOCLAIM", "s", "g", "d", "2000", "5-1", "COUNT", "1"}},
	{{"XAUTOCLAIM", "s", "g", "d", "2000", "(5-1", "COUNT", "1"}},
	{{"XAUTOCLAIM", "s", "g", "d", "2000", "+", "COUNT", "1"}},
	{{"XAUTOCLAIM", "s", "g", "d", "2000", "no id", "COUNT", "1"}},
	{{"XAUTOCLAIM", "s", "g", "c", "+2000", "0-0"}}, {{"XAUTOCLAIM", "s", "g", "c", "02000", "0-0"}},
	{{"XAUTOCLAIM", "s", "g", "c", "2000", "0-0", "COUNT", "+1"}}, {{"XAUTOCLAIM", "s", "g", "c", "2000", "0-0", "COUNT", "01"}},
	{{"XAUTOCLAIM", "s", "g", "c", "2000", "0-0", "COUNT", "0"}}, {{"XAUTOCLAIM", "s", "g", "c", "2000", "0-0", "COUNT", "-1"}},
	{{"XAUTOCLAIM", "s", "g", "c", "2000", "0-0", "COUNT"}}, {{"XAUTOCLAIM", "s", "g", "c", "2000"}}, {{"XAUTOCLAIM"}},
	{{"XAUTOCLAIM", "s", "g", "c", "2e3", "0-0"}}, {{"XAUTOCLAIM", "s", "g", "c", "", "0-0"}},
	{{"XAUTOCLAIM", "s", "g", "c", "9223372036854775807", "0-0"}}, {{"XAUTOCLAIM", "s", "g", "c", "9223372036854775808", "0-0"}},
	{{"XAUTOCLAIM", "s", "none", "c", "2000", "0-0"}}, {{"XAUTOCLAIM", "string", "g", "c", "2000", "0-0"}},
	{{"MULTI"}, {"XAUTOCLAIM", "next", "g", "c", "2000", "0-0", "COUNT", "1"}, {"EXEC"}},
	{{"MULTI"}, {"XAUTOCLAIM", "s", "g", "c", "2000", "0-0", "COUNT", "1"}, {"XACK", "s", "g", "1-1", "4-1"}, {"EXEC"}},
	{{"MULTI"}, {"XAUTOCLAIM", "s", "g", "c", "soon", "0-0"}, {"EXEC"}},
	{{"MULTI"}, {"XAUTOCLAIM", "s", "g"}, {"EXEC"}},
	{{"MULTI"}, {"XAUTOCLAIM", "s", "g", "c", "2000", "0-0"}, {"DISCARD"}},
	{{"EVAL", autoclaim, "1", "s"}},
	// One write, one after the other.
	{
		{"XAUTOCLAIM", "s", "g", "c", "2000", "0-0", "COUNT", "1"}, {"XACK", "s", "g", "3-1", "6-1"},
		{"XPENDING", "s", "g"}, {"XAUTOCLAIM", "s", "g", "e", "2000", "0-0", "COUNT", "1"}, {"PING"},
		{"XPENDING", "next", "g"}, {"XAUTOCLAIM", "next", "g", "c", "2000", "0-0", "COUNT", "3"},
	},
	{{"XAUTOCLAIM", "s", "g", "c", "2000", "0-0"}}, // all that is left
	{{"XAUTOCLAIM", "next", "g", "e", "2000", "0-0"}},
	{{"XAUTOCLAIM", "s", "g", "c", "2000", "0-0"}},

	{{"xreadgroup", "group", "g", "c", "count", "1", "streams", "s", ">"}},
	{{"XREADGROUP", "COUNT", "1", "GROUP", "g", "c", "STREAMS", "s", "next", ">", ">"}},
	{{"XREADGROUP", "BLOCK", "10", "NOACK", "COUNT", "1", "GROUP", "g", "c", "STREAMS", "s", ">"}},
	{{"XREADGROUP", "GROUP", "g", "c", "NOACK", "STREAMS", "next", ">"}},
	{{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "COUNT", "1", "STREAMS", "s", "next", ">", ">"}},
	{{"XREADGROUP", "GROUP", "g", "c", "COUNT", "2", "STREAMS", "s", "s", ">", "0"}},
	{{"XREADGROUP", "GROUP", "g", "c", "COUNT", "2", "STREAMS", "s", "next", "0", ">"}},
	{{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", "9-1"}},
	{{"XREADGROUP", "GROUP", "g", "c", "COUNT", "0", "STREAMS", "s", "0"}},
	{{"XREADGROUP", "GROUP", "g", "c", "COUNT", "-5", "STREAMS", "s", "0"}},
	{{"XREADGROUP", "GROUP", "g", "c", "COUNT", "x", "STREAMS", "s", ">"}},
	{{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "-1", "STREAMS", "s", ">"}},
	{{"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "$"}},
	{{"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "next", ">"}},
	{{"XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "none", ">", ">"}},
	{{"XREADGROUP", "GROUP", "none", "c", "BLOCK", "10", "STREAMS", "s", ">"}},
	{{"XREADGROUP", "STREAMS", "s", ">"}}, {{"XREADGROUP", "GROUP", "g"}},
	{{"MULTI"}, {"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "BLOCK", "0", "STREAMS", "s", ">"}, {"EXEC"}},
	{{"EVAL", "return redis.call('XREADGROUP', 'GROUP', 'g', 'c', 'COUNT', '1', 'STREAMS', KEYS[1], '>')", "1", "s"}},
	{
		{"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "s", ">"}, {"XREADGROUP", "GROUP", "g", "d", "COUNT", "1", "STREAMS", "s", ">"},
		{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "10", "STREAMS", "s", ">"}, {"XREADGROUP", "GROUP", "g", "c", "BLOCK", "10", "STREAMS", "s", ">"},
		{"XAUTOCLAIM", "s", "g", "c", "2000", "0-0"},
	},
	{{"MULTI"}, {"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"}, {"EXEC"}},
}

// Whichever form a command comes in, it is answered as by the server itself, and leaves behind what
// the server itself would have left: the same entries, pending for the same consumers, delivered as
// often.
func TestOddForms(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		for _, proto := range []string{"2", "3"} {
			t.Run("RESP"+proto, func(t *testing.T) { odd(t, proto) })
		}
	})
}

func odd(t *testing.T, proto string) {
	w, f := startTwins(t, proto)
	streams := []string{"s", "next", "gone"}
	for k, state := range []string{"unknown", "cold", "hot"} {
		if state != "unknown" {
			for _, s := range streams {
				w.both([]string{"DEL", s}, []string{"XGROUP", "CREATE", s, "g", "0", "MKSTREAM"})
			}
			w.same("learning", readCommand("g", "c", 100, -1, streams), claimCommand("s", "g", "c", minIdleMillis, "1"))
			w.same("learning", []string{"XAUTOCLAIM", "s", "g", "c", "3000", "0-0"})
			for _, s := range streams {
				w.proxied.state(s, "g", "cold")
			}
		}
		if state == "hot" {
			w.fill()
			eventually(t, "none is cold at any min-idle", func() bool { return !strings.Contains(w.proxied.ask("PROXY", "STREAMS"), "\ncold") })
		}
		for _, s := range streams[:2] {
			for i := range 12 {
				w.both([]string{"XADD", s, fmt.Sprint(1000*(k+1)+i, "-1"), "f", "v"})
			}
		}
		for _, form := range oddForms {
			w.same(state+", "+strings.Join(form[0], " "), form...)
		}
		for _, s := range streams {
			w.same(state+", left behind", []string{"XPENDING", s, "g"})
			w.counts(state, s)
		}
	}
	if f.count("delivered") == 0 || f.count("local xautoclaim") == 0 {
		t.Error("the proxy has answered nothing by itself")
	}
}

// both does the same at both servers, past the proxy.
func (w *twins) both(commands ...[]string) {
	w.t.Helper()
	for _, c := range w.servers {
		c.all(commands...)
	}
}

// counts compares what is pending in a stream at both servers, but for the time.
func (w *twins) counts(state, stream string) {
	w.t.Helper()
	var lists [2]string
	eventually(w.t, stream+": the same is pending at both", func() bool {
		for i, c := range w.servers {
			lists[i] = ""
			for _, p := range c.pendings(stream, "g") {
				p.idle = 0
				lists[i] += fmt.Sprintln(p)
			}
		}
		return lists[0] == lists[1]
	})
	if lists[0] == "" && state == "hot" && stream != "gone" {
		w.t.Errorf("%s: nothing is pending in %s: this proves little", state, stream)
	}
}

// A read that blocks for ever brings what is added while it does.
func TestReadForEver(t *testing.T) {
	t.Parallel()
	w, _ := startTwins(t, "2")
	for i, read := range [][]string{
		{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"},
		{"xreadgroup", "BLOCK", "0", "count", "1", "group", "g", "c", "NOACK", "streams", "next", "s", ">", ">"},
		{"XREADGROUP", "NOACK", "GROUP", "g", "STREAMS", "BLOCK", "0", "STREAMS", "gone", "s", ">", ">"},
	} {
		var got [2]string
		for k, c := range []*client{w.proxied, w.plain} {
			c.sends(read...)
			w.servers[k].blocked(1)
			w.servers[k].ask("XADD", "s", fmt.Sprint(i+1, "-1"), "f", "v")
			got[k] = c.reply()
		}
		if got[0] != got[1] || len(got[0]) < 10 {
			t.Errorf("%q: got %q, want %q", read, got[0], got[1])
		}
	}
	w.counts("", "s")
}

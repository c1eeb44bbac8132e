package proxy

import (
	"strings"
	"testing"
	"time"

	"streamproxy/internal/resp"
)

func TestRearmable(t *testing.T) {
	for line, want := range map[string]bool{
		"XREAD BLOCK 0 STREAMS s 0-0":                           true,
		"XREAD BLOCK 10 STREAMS $ + 1-1 0":                      true,
		"XREAD BLOCK 10 STREAMS a b 0 $":                        false,
		"XREAD BLOCK 10 STREAMS a b + 0":                        false,
		"XREAD BLOCK -1 STREAMS s 0":                            false,
		"XREAD STREAMS s 0":                                     false,
		"XREAD SOMETHING BLOCK 1 STREAMS s 0":                   false,
		"XREADGROUP GROUP g c BLOCK 10 STREAMS s >":             true,
		"XREADGROUP GROUP NOACK NOACK BLOCK 10 STREAMS NOACK >": true,
		"XREADGROUP GROUP g c NOACK BLOCK 10 STREAMS s >":       false,
		"XREADGROUP GROUP g c BLOCK 10 noack STREAMS s >":       false,
		"BLPOP l 0": false,
	} {
		cmd := commandOf(strings.Fields(line)...)
		verb := map[string]Verb{"XREAD": VerbXRead, "XREADGROUP": VerbXReadGroup}[strings.Fields(line)[0]]
		if got := rearmable(verb, cmd); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestRearmed(t *testing.T) {
	cmd := commandOf("XREAD", "COUNT", "5", "BLOCK", "5000", "STREAMS", "s", "0")
	want := string(resp.AppendCommand(nil, "XREAD", "COUNT", "5", "BLOCK", "70", "STREAMS", "s", "0"))
	if got := string(rearmed(cmd, 70*time.Millisecond)); got != want {
		t.Errorf("got %q", got)
	}
	if got := string(rearmed(cmd, 5*time.Second)); got != string(cmd.Raw) {
		t.Errorf("got %q", got)
	}
}

func TestShortened(t *testing.T) {
	for _, tc := range []struct{ trip, block, want time.Duration }{
		{28 * time.Millisecond, 5 * time.Second, 4972 * time.Millisecond},
		{28 * time.Millisecond, 10 * time.Millisecond, time.Millisecond}, // 0 would be for ever
		{28 * time.Millisecond, 0, 0},
		{900 * time.Microsecond, time.Second, time.Second},
	} {
		p := new(Proxy)
		p.handshake.Store(int64(tc.trip))
		if got := p.shortened(tc.block); got != tc.want {
			t.Errorf("%v over %v: %v, want %v", tc.block, tc.trip, got, tc.want)
		}
	}
}

// A read of a group whose connection is lost may have been answered. Where the server cannot be asked
// before its time is up, its outcome is unknown; that of a read that assigns nothing is known.
func TestLostReadWithoutAServer(t *testing.T) {
	for command, want := range map[string]string{
		"XREADGROUP GROUP g c BLOCK 300 STREAMS s >": "-ERR streamproxy: upstream connection lost; outcome unknown\r\n",
		"XREAD BLOCK 300 STREAMS s 0":                "*-1\r\n",
	} {
		t.Run(command, func(t *testing.T) {
			f := startFake(t)
			p := startProxy(t, f, nil)
			f.script(func(_ *fakeConn, args []string) (string, bool) { return "", strings.HasPrefix(args[0], "XREAD") })
			c := p.client()
			c.SendCommand(strings.Fields(command)...)
			f.wait(t, "the read", func() bool { return len(f.seen) > 0 && strings.HasPrefix(f.seen[len(f.seen)-1], "XREAD") })
			f.leave(t, p)
			expectReply(t, c, want)
		})
	}
}

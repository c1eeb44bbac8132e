//go:build cases

package cases

import (
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// A script loops on a shared connection. SCRIPT KILL, sent by another client, must not queue behind
// it there, where the server does not read; it ends the script at once, and what had queued is
// served.
func TestCase59ScriptKill(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--lua-time-limit", "50"))
	f := startProxy(t, s.Addr())
	looper, killer, behind := f.client(), f.client(), f.client()
	killer.gets("+OK\r\n", "SET", "k", "v")
	for range 3 {
		looper.sends(redistest.Command("EVAL", "while true do end", "0"))
		busy(t, s)
		behind.sends(redistest.Command("GET", "k"))
		start := time.Now()
		killer.gets("+OK\r\n", "SCRIPT", "KILL")
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("SCRIPT KILL took %v", took)
		}
		if got := looper.reply(); !strings.HasPrefix(got, "-ERR ") || !strings.Contains(got, "killed by user") {
			t.Fatalf("the script's client got %q", got)
		}
		if got := behind.reply(); got != bulk("v") && !strings.HasPrefix(got, "-BUSY ") {
			t.Fatalf("the client behind got %q", got)
		}
		killer.gets("-NOTBUSY No scripts in execution right now.\r\n", "SCRIPT", "KILL")
		behind.gets(bulk("v"), "GET", "k")
	}
}

// busy waits until the server says that it runs a script.
func busy(t *testing.T, s *redistest.Server) {
	t.Helper()
	eventually(t, "the server runs the script", func() bool {
		return strings.HasPrefix(s.Do("GET", "k"), "-BUSY ")
	})
}

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

// A server that a script holds lets nobody SELECT, and the proxy has to for a new connection in another
// database. A SELECT is answered so; HELLO and AUTH, which the server would take, are not: libraries
// take an error there for a refusal, and go on in the older protocol. Their connection ends.
func TestSetUpWhileTheServerIsBusy(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s := redistest.Start(t, redistest.WithArgs("--lua-time-limit", "50"))
		s.Do("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all")
		f := startProxy(t, s.Addr())
		elsewhere := func() *client {
			c := connect(t, f.tcp)
			c.gets("+OK\r\n", "SELECT", "2")
			return c
		}
		selects, hello, auth := connect(t, f.tcp), elsewhere(), elsewhere()
		selects.gets("$-1\r\n", "GET", "k")
		script, killer := s.Client(), s.Client()
		if err := script.SendCommand("EVAL", "while true do end", "0"); err != nil {
			t.Fatal(err)
		}
		busy(t, s)
		free, _ := killer.Do("SELECT", "0") // Valkey 9.1 lets one
		if got := selects.ask("SELECT", "3"); got != free {
			t.Errorf("SELECT: %q, the server says %q", got, free)
		}
		hello.sends(pipeline([]string{"HELLO", "3"}))
		auth.sends(pipeline([]string{"AUTH", "u", "p"}))
		if free == "+OK\r\n" {
			auth.replies(free)
			if got := hello.reply(); got[0] != '%' {
				t.Errorf("HELLO: %q", got)
			}
		} else {
			hello.ends()
			auth.ends()
		}
		_, _ = killer.Do("SCRIPT", "KILL")
		eventually(t, "the server to be free", func() bool { return selects.ask("SELECT", "3") == "+OK\r\n" })
		if got := selects.ask("HELLO", "3"); got[0] != '%' {
			t.Errorf("HELLO: %q", got)
		}
	})
}

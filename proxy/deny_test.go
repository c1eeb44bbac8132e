package proxy

import (
	"fmt"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
)

// noPerm is what a client is told.
func noPerm(name string) string {
	return fmt.Sprintf("-NOPERM streamproxy: no permissions to run the '%s' command through this proxy (--deny)\r\n", name)
}

const execAbort = "-EXECABORT Transaction discarded because of previous errors.\r\n"

// startStrict starts a proxy with a list of commands that it denies, before a server that refuses
// stand-ins in the words of version 7 and fails a transaction in which it has refused something.
func startStrict(t *testing.T, quote string, change func(*Config), denied ...string) (*fakeServer, *testProxy) {
	t.Helper()
	f := startFake(t)
	type state struct{ multi, failed bool }
	states := map[*fakeConn]*state{}
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if len(args) == 0 {
			return "", true // nothing to execute, and answered by nobody
		}
		if states[c] == nil {
			states[c] = new(state)
		}
		st := states[c]
		switch name := strings.ToLower(args[0]); {
		case strings.HasPrefix(name, "streamproxy:"):
			st.failed = st.multi
			return fmt.Sprintf("-ERR unknown command %s%s%s, with args beginning with: \r\n", quote, args[0], quote), true
		case name == "nonesuch":
			return "-ERR unknown command 'nonesuch', with args beginning with: \r\n", true
		case name == "multi":
			st.multi, st.failed = true, false
			return "+OK\r\n", true
		case name == "exec":
			st.multi = false
			if st.failed {
				return execAbort, true
			}
			return "*0\r\n", true
		case name == "watch":
			return "+OK\r\n", true
		case st.multi:
			return "+QUEUED\r\n", true
		}
		return "", false
	})
	p := startProxy(t, f, func(c *Config) {
		c.Deny = denied
		if change != nil {
			change(c)
		}
	})
	t.Cleanup(func() { // whatever a case has done
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, s := range f.seen {
			for _, name := range denied {
				if strings.HasPrefix(strings.ToLower(s), strings.ReplaceAll(name, "|", " ")) {
					t.Errorf("%.60q has passed", s)
				}
			}
		}
	})
	return f, p
}

// large is a command that does not fit among others.
func large(args ...string) string {
	return redistest.Command(append(args, strings.Repeat("*1\r\n$8\r\nFLUSHALL\r\n", 8<<10))...)
}

// Each form in which a command can come, and what is answered.
var deniedForms = []struct {
	name string
	send []string // one write each
	want []string
}{
	{"plain", []string{redistest.Command("FLUSHALL")}, []string{noPerm("flushall")}},
	{"any case", []string{redistest.Command("FlushAll", "async")}, []string{noPerm("flushall")}},
	{"among others", []string{redistest.Command("GET", "a") + redistest.Command("flushall") + redistest.Command("GET", "b")},
		[]string{bulkReply("a"), noPerm("flushall"), bulkReply("b")}},
	{"inline", []string{"flushall\r\n", " FLUSHALL async\n"}, []string{noPerm("flushall"), noPerm("flushall")}},
	{"inline with quotes", []string{"\"flush\\x61ll\"\r\n'flushall'\r\n"}, []string{noPerm("flushall"), noPerm("flushall")}},
	{"in crumbs", strings.SplitAfter(redistest.Command("FLUSHALL")+redistest.Command("GET", "a"), "L"), []string{noPerm("flushall"), bulkReply("a")}},
	{"subcommand", []string{redistest.Command("OBJECT", "Freq", "k") + redistest.Command("OBJECT", "ENCODING", "k") + redistest.Command("OBJECT")},
		[]string{noPerm("object|freq"), bulkReply("ENCODING"), bulkReply("OBJECT")}},
	{"second word of no container", []string{redistest.Command("MOD.X", "DROP") + redistest.Command("MOD.X", "ADD")},
		[]string{noPerm("mod.x|drop"), bulkReply("ADD")}},
	{"kept by the session", []string{redistest.Command("SELECT", "1") + redistest.Command("ECHO", "a")}, []string{noPerm("select"), bulkReply("a")}},
	{"answered here", []string{redistest.Command("PROXY", "CONFIG")}, []string{noPerm("proxy|config")}},
	{"stream consumers'", []string{redistest.Command("XAUTOCLAIM", "s", "g", "c", "1", "0")}, []string{noPerm("xautoclaim")}},
	{"blocking", []string{redistest.Command("BLPOP", "k", "0")}, []string{noPerm("blpop")}},
	{"for good", []string{redistest.Command("MONITOR") + redistest.Command("GET", "a")}, []string{noPerm("monitor"), bulkReply("a")}},
	{"whole transaction", []string{redistest.Command("MULTI") + redistest.Command("GET", "a") + redistest.Command("flushall") + redistest.Command("EXEC") + redistest.Command("GET", "b")},
		[]string{"+OK\r\n", "+QUEUED\r\n", noPerm("flushall"), execAbort, bulkReply("b")}},
	{"whole transaction with a subcommand", []string{redistest.Command("MULTI") + redistest.Command("object", "freq", "k") + redistest.Command("EXEC")},
		[]string{"+OK\r\n", noPerm("object|freq"), execAbort}},
	{"transaction step by step", []string{redistest.Command("MULTI"), redistest.Command("GET", "a"), redistest.Command("FLUSHALL"), redistest.Command("EXEC")},
		[]string{"+OK\r\n", "+QUEUED\r\n", noPerm("flushall"), execAbort}},
	{"inline within a transaction", []string{"MULTI\r\nSELECT 1\r\nEXEC\r\n"}, []string{"+OK\r\n", noPerm("select"), execAbort}},
	{"after WATCH", []string{redistest.Command("WATCH", "k") + redistest.Command("FLUSHALL") + redistest.Command("MULTI") + redistest.Command("EXEC")},
		[]string{"+OK\r\n", noPerm("flushall"), "+OK\r\n", "*0\r\n"}},
	{"large", []string{large("MSETNX", "k"), redistest.Command("GET", "a")}, []string{noPerm("msetnx"), bulkReply("a")}},
	{"large, the name comes late", []string{"*20000\r\n", "$6\r\nMSE", "TNX\r\n" + strings.Repeat("$1\r\na\r\n", 19999), redistest.Command("GET", "a")},
		[]string{noPerm("msetnx"), bulkReply("a")}},
	{"large, the subcommand comes late", []string{"*20000\r\n$6\r\nOBJECT\r\n", "$4\r\nfreq\r\n" + strings.Repeat("$1\r\na\r\n", 19998), redistest.Command("GET", "a")},
		[]string{noPerm("object|freq"), bulkReply("a")}},
	{"large within a transaction", []string{redistest.Command("MULTI"), large("MSETNX", "k"), redistest.Command("EXEC")},
		[]string{"+OK\r\n", noPerm("msetnx"), execAbort}},
}

func TestDenied(t *testing.T) {
	for _, tt := range deniedForms {
		t.Run(tt.name, func(t *testing.T) {
			_, p := startStrict(t, "'", nil, "flushall", "object|freq", "mod.x|drop", "select", "proxy|config", "xautoclaim", "blpop", "monitor", "msetnx")
			c := p.client()
			for _, part := range tt.send {
				if err := c.Send(part); err != nil {
					t.Fatal(err)
				}
			}
			for _, want := range tt.want {
				if got, err := c.ReadReply(); err != nil || got != want {
					t.Fatalf("got %.200q, %v; want %.200q", got, err, want)
				}
			}
			expect(t, c, "+PONG\r\n", "PING")
		})
	}
}

// Before AUTH that is what is asked for, as at the server; but for what needs none.
func TestDeniedBeforeAuth(t *testing.T) {
	_, p := startStrict(t, "'", func(c *Config) { c.RequirePass = func() (string, error) { return "secret", nil } }, "flushall", "hello")
	c := p.client()
	expect(t, c, "-NOAUTH Authentication required.\r\n", "FLUSHALL")
	expect(t, c, noPerm("hello"), "HELLO", "3", "AUTH", "default", "secret")
	expect(t, c, "+OK\r\n", "AUTH", "secret")
	expect(t, c, noPerm("flushall"), "FLUSHALL")
}

// What the server says of its commands changes nothing, and neither does being shareable.
func TestDeniedWhateverTheServerSays(t *testing.T) {
	cfg := DefaultConfig()
	cfg.SharedCommands, cfg.Deny = []string{"m.get"}, []string{"M.GET", "client|KILL", "new"}
	table, err := cfg.table(upstream.Facts{Commands: []upstream.CommandInfo{{Name: "new", Flags: []string{"readonly"}}, {Name: "m.get"},
		{Name: "client", Subcommands: []upstream.CommandInfo{{Name: "client|kill"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for command, denied := range map[string]bool{"m.get k": true, "new": true, "client kill id 1": true, "client": false, "client id": false, "get k": false} {
		if got := table.Classify(words(command)).Class == ClassDenied; got != denied {
			t.Errorf("%s is denied: %v", command, got)
		}
	}
	if DefaultTable().Classify(words("client kill")).Class == ClassDenied {
		t.Error("the table of other proxies has changed")
	}
}

func TestDenialsThatCannotBe(t *testing.T) {
	for list, want := range map[string]string{
		"":                 `denied command ""`,
		"a b":              `denied command "a b" is neither`,
		"config|":          "is neither a command's name nor CONTAINER|SUBCOMMAND",
		"a|b|c":            "is neither",
		"|set":             "is neither",
		"caf\u00e9":        "is neither",
		"get,Exec":         "leave clients in transactions",
		"x," + big:         "1 to 32 bytes",
		"exec,multi,ft.x1": "",
		"not.known|yet":    "",
	} {
		_, err := newDenials(strings.Split(list, ","))
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%q: %s", list, got)
		}
	}
	cfg := DefaultConfig()
	cfg.Deny = []string{"a b"}
	if _, err := New(cfg); err == nil {
		t.Error("a proxy starts with a name that cannot be one")
	}
}

var big = strings.Repeat("x", maxNameLen+1)

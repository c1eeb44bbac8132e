package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

func TestParseHello(t *testing.T) {
	for line, want := range map[string]helloArgs{
		"HELLO":                       {},
		"HELLO 2":                     {proto: 2},
		"HELLO 3":                     {proto: 3},
		"HELLO 3 AUTH u p":            {proto: 3, logins: 1, at: 3, user: "u", password: "p"},
		"hello 3 auth u p setname n":  {proto: 3, logins: 1, at: 3, user: "u", password: "p", named: true, name: "n"},
		"HELLO 2 SETNAME n AUTH u p":  {proto: 2, logins: 1, at: 5, user: "u", password: "p", named: true, name: "n"},
		"HELLO 3 SETNAME AUTH":        {proto: 3, named: true, name: "AUTH"},
		"HELLO 3 AUTH SETNAME AUTH":   {proto: 3, logins: 1, at: 3, user: "SETNAME", password: "AUTH"},
		"HELLO 3 AUTH a b AUTH u p":   {proto: 3, logins: 2, at: 6, user: "u", password: "p"},
		"HELLO 3 SETNAME a SETNAME b": {proto: 3, named: true, name: "b"},
	} {
		if got, ok := parseHello(words(line)); !ok || got != want {
			t.Errorf("%s: %+v, %v", line, got, ok)
		}
	}
	for _, line := range []string{
		"HELLO 4", "HELLO x", "HELLO 03", "HELLO 3 AUTH", "HELLO 3 AUTH u", "HELLO 3 SETNAME", "HELLO 3 FOO", "HELLO AUTH u p",
	} {
		if got, ok := parseHello(words(line)); ok {
			t.Errorf("%s was understood as %+v", line, got)
		}
	}
	if _, ok := parseHello(commandOf("HELLO", "3", "SETNAME", "with space")); ok {
		t.Error("a name with a space was taken")
	}
}

// The id in HELLO's reply is the session's; nothing else is touched, and a reply
// without one stays as it is.
func TestReplaceID(t *testing.T) {
	for in, want := range map[string]string{
		"*4\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:7\r\n":           "*4\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:4503599627370499\r\n",
		"%2\r\n$2\r\nid\r\n:123456\r\n$4\r\nmode\r\n$2\r\nid\r\n": "%2\r\n$2\r\nid\r\n:4503599627370499\r\n$4\r\nmode\r\n$2\r\nid\r\n",
		"-NOPERM no\r\n": "-NOPERM no\r\n",
		"*0\r\n":         "*0\r\n",
	} {
		if got := string(replaceID([]byte(in), 4503599627370499)); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

// What the session keeps for its client: name, database, and what RESET does to them.
func TestSessionState(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	c := p.client()
	expect(t, c, "$-1\r\n", "CLIENT", "GETNAME")
	expect(t, c, "+OK\r\n", "CLIENT", "SETNAME", "worker-1")
	expect(t, c, "$8\r\nworker-1\r\n", "CLIENT", "GETNAME")
	expect(t, c, "+OK\r\n", "SELECT", "7")
	expect(t, c, bulkReply("a"), "GET", "a")
	if list := p.clientsText(); !strings.Contains(list, "name=worker-1") || !strings.Contains(list, "db=7") {
		t.Errorf("PROXY CLIENTS: %s", list)
	}
	var on string
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] == "GET" {
			on = c.db
		}
		return "", false
	})
	expect(t, c, bulkReply("b"), "GET", "b")
	if on != "7" {
		t.Errorf("GET ran in database %q", on)
	}
	expect(t, c, "+RESET\r\n", "RESET")
	expect(t, c, "$-1\r\n", "CLIENT", "GETNAME")
	expect(t, c, bulkReply("c"), "GET", "c")
	if on != "" {
		t.Errorf("after RESET GET ran in database %q", on)
	}
	expect(t, c, "+OK\r\n", "CLIENT", "SETNAME", "")
	expect(t, c, "$-1\r\n", "CLIENT", "GETNAME")
}

// QUIT is answered behind everything before it, and nothing runs behind it.
func TestQuit(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	c := p.client()
	c.Send(redistest.Command("GET", "a") + redistest.Command("QUIT") + redistest.Command("GET", "never"))
	for _, want := range []string{bulkReply("a"), "+OK\r\n"} {
		if got, err := c.ReadReply(); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	expectEnd(t, c)
	if f.count("GET never") != 0 {
		t.Error("a command behind QUIT was sent")
	}
}

// A database is changed between the commands of a pipeline, never under them.
func TestSelectInAPipeline(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] != "GET" {
			return "", false
		}
		return bulkReply(args[1] + "@" + c.db), true
	})
	c := p.client()
	var pipeline, want strings.Builder
	for i := range 30 {
		db := fmt.Sprint(1 + i%3)
		pipeline.WriteString(redistest.Command("SELECT", db) + redistest.Command("GET", fmt.Sprint(i)))
		want.WriteString("+OK\r\n" + bulkReply(fmt.Sprintf("%d@%s", i, db)))
	}
	if err := c.Send(pipeline.String()); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for range 60 {
		reply, err := c.ReadReply()
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(reply)
	}
	if got.String() != want.String() {
		t.Errorf("got %q", got.String())
	}
}

// With a password of the proxy's own: nothing but AUTH and HELLO before it, in Redis's
// words, and RESET takes it back.
func TestRequirePass(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, func(c *Config) { c.RequirePass = func() (string, error) { return "secret", nil } })
	c := p.client()
	const noAuth = "-NOAUTH Authentication required.\r\n"
	expect(t, c, noAuth, "GET", "a")
	expect(t, c, noAuth, "CLIENT", "ID")
	expect(t, c, "-"+textNoAuthHi+"\r\n", "HELLO", "3")
	expect(t, c, "-"+textWrongPass+"\r\n", "AUTH", "wrong")
	expect(t, c, "-"+textWrongPass+"\r\n", "HELLO", "2", "AUTH", "default", "wrong")
	expect(t, c, noAuth, "GET", "a")
	expect(t, c, "+OK\r\n", "AUTH", "secret")
	expect(t, c, bulkReply("a"), "GET", "a")
	expect(t, c, "+RESET\r\n", "RESET")
	expect(t, c, noAuth, "GET", "a")
	if got, err := c.Do("HELLO", "2", "AUTH", "default", "secret"); err != nil || !strings.Contains(got, "proto") {
		t.Errorf("HELLO: %q, %v", got, err)
	}
	expect(t, c, bulkReply("a"), "GET", "a")
	if n := f.count("AUTH"); n != 0 {
		t.Errorf("the proxy's own password reached the server %d times", n)
	}
}

// Strangers cannot fill the log while the password of clients cannot be read.
func TestRequirePassUnreadable(t *testing.T) {
	f := startFake(t)
	lines := make(chan string, 100)
	p := startProxy(t, f, func(c *Config) {
		c.RequirePass = func() (string, error) { return "", errors.New("no such file") }
		c.Logger = slog.New(slog.NewTextHandler(lineWriter(lines), nil))
	})
	c := p.client()
	expect(t, c, "-"+textWrongPass+"\r\n", "AUTH", "secret")
	expect(t, c, "-"+textWrongPass+"\r\n", "AUTH", "secret")
	n := 0
	for range len(lines) {
		if strings.Contains(<-lines, "cannot be read") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d lines, want one", n)
	}
}

// RESP3 clients ride RESP3 lanes and get their own null.
func TestHello3(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	c := p.client()
	got, err := c.Do("HELLO", "3", "SETNAME", "three")
	if err != nil || !strings.HasPrefix(got, "%3\r\n") || !strings.Contains(got, fmt.Sprintf("$2\r\nid\r\n:%d\r\n", int64(firstID))) {
		t.Errorf("HELLO 3: %q, %v", got, err)
	}
	expect(t, c, "$5\r\nthree\r\n", "CLIENT", "GETNAME")
	expect(t, c, "+OK\r\n", "CLIENT", "SETNAME", "")
	expect(t, c, "_\r\n", "CLIENT", "GETNAME")
	expect(t, c, bulkReply("a"), "GET", "a")
}

// A pipeline whose lane is lost in the middle: the first is unknown, the others not
// sent, and they were not; what comes after the answers runs.
func TestLostLaneIsNotTorn(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	f.script(func(c *fakeConn, args []string) (string, bool) {
		if args[0] == "INCR" && args[1] == "a" {
			c.Close()
			return "", true
		}
		return "", false
	})
	c := p.client()
	expect(t, c, bulkReply("x"), "GET", "x")
	c.SendCommand("INCR", "a")
	f.await(t, "INCR a", 1)
	c.SendCommand("INCR", "b")
	c.SendCommand("INCR", "c")
	first, err := c.ReadReply()
	if err != nil || first != string(replyUnknown) {
		t.Errorf("the first: %q, %v", first, err)
	}
	for range 2 { // each was read before or after the loss was known
		got, err := c.ReadReply()
		if err != nil {
			t.Fatal(err)
		}
		if got != string(replyNotSent) && got != bulkReply("b") && got != bulkReply("c") && got != string(replyUnknown) {
			t.Errorf("got %q", got)
		}
	}
	expect(t, c, bulkReply("d"), "INCR", "d")
	if n := f.count("INCR a"); n != 1 {
		t.Errorf("a command that may have run was sent %d times", n)
	}
}

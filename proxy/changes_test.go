package proxy

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// transactor queues and executes as a server does. With fate it answers EXEC instead; what
// begins with one of hushed it does not answer.
type transactor struct {
	*fakeServer
	queues map[*fakeConn][][]string
	fate   string
	hushed string
}

func startTransactor(t *testing.T) *transactor {
	g := &transactor{fakeServer: startFake(t), queues: map[*fakeConn][][]string{}}
	g.script(g.reply)
	return g
}

func (g *transactor) reply(c *fakeConn, args []string) (string, bool) {
	queue, multi := g.queues[c]
	command := strings.Join(args, " ")
	switch {
	case g.hushed != "" && strings.HasPrefix(command, g.hushed) && c.kind == "private":
		return "", true
	case args[0] == "MULTI" && multi:
		return "-ERR MULTI calls can not be nested\r\n", true
	case args[0] == "MULTI":
		g.queues[c] = nil
		return "+OK\r\n", true
	case multi && args[0] == "DISCARD":
		delete(g.queues, c)
		return "+OK\r\n", true
	case multi && args[0] == "WATCH":
		return "-ERR WATCH inside MULTI is not allowed\r\n", true
	case multi && args[0] == "EXEC":
		delete(g.queues, c)
		if g.fate != "" {
			return g.fate, true
		}
		reply := fmt.Sprintf("*%d\r\n", len(queue))
		for _, args := range queue {
			reply += g.execute(c, args)
		}
		return reply, true
	case multi:
		g.queues[c] = append(queue, args)
		return "+QUEUED\r\n", true
	}
	return g.execute(c, args), true
}

func (g *transactor) execute(c *fakeConn, args []string) string {
	switch command := strings.Join(args, " "); {
	case command == "GET large":
		return bulkReply(strings.Repeat("x", 5<<20))
	case args[0] == "CLIENT" && len(args) > 2 && strings.Contains(args[2], " "):
		return "-ERR Client names cannot contain spaces\r\n"
	case command == "CLIENT GETNAME":
		return bulkReply(c.name)
	case command == "AUTH eve right", args[0] == "WATCH", args[0] == "UNWATCH":
		return "+OK\r\n"
	case command == "HELLO 3 AUTH eve right":
		args = args[:2]
	}
	return g.standard(c, args)
}

// What a transaction does to its client's connection is so from EXEC on, if the server has done it.
func TestTransactionChangesTheSession(t *testing.T) {
	const none, null3 = "$-1\r\n", "_\r\n"
	for name, tt := range map[string]struct {
		fate, commands, name string
		db                   int
		user                 string
	}{
		"name":              {"", "MULTI|CLIENT SETNAME nm|EXEC", bulkReply("nm"), 0, ""},
		"the last name":     {"", "MULTI|CLIENT SETNAME nm|GET a|CLIENT SETNAME no|EXEC", bulkReply("no"), 0, ""},
		"refused name":      {"", "MULTI|CLIENT SETNAME nm|'CLIENT' 'SETNAME' 'a b'|EXEC", bulkReply("nm"), 0, ""},
		"protocol":          {"", "MULTI|HELLO 3|EXEC", null3, 0, ""},
		"protocol back":     {"", "HELLO 3|MULTI|HELLO 2|EXEC", none, 0, ""},
		"HELLO with a name": {"", "MULTI|GET a|HELLO 3 SETNAME nm|EXEC", bulkReply("nm"), 0, ""},
		"database":          {"", "MULTI|SELECT 3|SELECT 99|EXEC", none, 3, ""},
		"behind a large":    {"", "MULTI|GET large|SELECT 3|CLIENT SETNAME nm|EXEC", bulkReply("nm"), 3, ""},
		"between commands":  {"", "WATCH k|GET a|MULTI|MULTI|GET a|WATCH k|GET a|SELECT 99|SELECT 3|GET large|EXEC", none, 3, ""},
		"user":              {"", "MULTI|AUTH eve right|HELLO 3 AUTH eve right|EXEC", null3, 0, "eve"},
		"after EXEC":        {"", "MULTI|SELECT 3|EXEC|CLIENT SETNAME nm|MULTI|CLIENT SETNAME no|EXEC", bulkReply("no"), 3, ""},
		"discarded":         {"", "MULTI|HELLO 3 SETNAME nm|SELECT 3|AUTH eve right|DISCARD", none, 0, ""},
		"aborted":           {"-EXECABORT Transaction discarded\r\n", "MULTI|HELLO 3 SETNAME nm|SELECT 3|EXEC", none, 0, ""},
		"watched":           {"*-1\r\n", "WATCH k|MULTI|HELLO 3 SETNAME nm|SELECT 3|EXEC", none, 0, ""},
		"under WATCH":       {"", "WATCH k|HELLO 3|SELECT 3|CLIENT SETNAME nm|CLIENT SETNAME |AUTH eve right|SELECT 99", null3, 3, "eve"},
	} {
		for _, piped := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " piped ", piped), func(t *testing.T) {
				g := startTransactor(t)
				g.fate = tt.fate
				p := startProxy(t, g.fakeServer, nil)
				c := p.client()
				play(t, c, strings.Split(tt.commands, "|"), piped)
				expect(t, c, tt.name, "CLIENT", "GETNAME")
				s := p.sessions.all()[0]
				if key := s.home.Load().key; key.DB != tt.db || s.db.Load() != int64(tt.db) || key.User.Name != tt.user {
					t.Errorf("database %d, user %q; want %d, %q", key.DB, key.User.Name, tt.db, tt.user)
				}
				expect(t, c, "+RESET\r\n", "RESET")
				expect(t, c, none, "CLIENT", "GETNAME")
			})
		}
	}
}

// play sends commands whose arguments stand between blanks, or quotation marks, and reads as many replies.
func play(t *testing.T, c *redistest.Client, commands []string, piped bool) {
	t.Helper()
	for i, command := range commands {
		args := strings.Split(command, " ")
		if command[0] == '\'' {
			args = strings.Split(strings.Trim(command, "'"), "' '")
		}
		if err := c.Send(redistest.Command(args...)); err != nil {
			t.Fatal(err)
		}
		for n := 0; !piped && n < 1 || piped && i == len(commands)-1 && n < len(commands); n++ {
			if got, err := c.ReadReply(); err != nil || strings.HasPrefix(got, "-ERR streamproxy") {
				t.Fatalf("%s: %.200q, %v", command, got, err)
			}
		}
	}
}

// A name given in a transaction the server has taken before it can be refused here: the client ends.
func TestNoRoomForANameOfATransaction(t *testing.T) {
	g := startTransactor(t)
	p := startProxy(t, g.fakeServer, func(c *Config) { c.MemoryLimit = 1 << 20 })
	first, second := p.client(), p.client()
	expect(t, first, "+OK\r\n", "CLIENT", "SETNAME", strings.Repeat("a", 20<<10))
	play(t, second, []string{"MULTI", "CLIENT SETNAME " + strings.Repeat("b", 20<<10), "EXEC"}, false)
	expectEnd(t, second)
	first.Close()
	until(t, "the names to go with their clients", func() bool { return p.inBuffers() == 0 })
}

// A connection that has been watched on and is kept for good from then on has its client's name.
func TestPinnedOwnHasTheClientsName(t *testing.T) {
	g := startTransactor(t)
	c := startProxy(t, g.fakeServer, nil).client()
	expect(t, c, "+OK\r\n", "CLIENT", "SETNAME", "nm")
	expect(t, c, "+OK\r\n", "WATCH", "k")
	if _, err := c.Do("CLIENT", "TRACKING", "ON"); err != nil {
		t.Fatal(err)
	}
	expect(t, c, bulkReply("nm"), "CLIENT", "GETNAME")
}

// A subscription that is queued ends its transaction's state here, too: after RESET the client is one
// that has none, and WAIT asks where it wrote.
func TestResetAfterAQueuedSubscription(t *testing.T) {
	g := startTransactor(t)
	asked := map[string]int64{} // by command, the connection
	g.script(func(c *fakeConn, args []string) (string, bool) {
		switch asked[args[0]] = c.id; args[0] {
		case "RESET":
			return "+RESET\r\n", true
		case "QUIT":
			_, _ = io.WriteString(c, "+OK\r\n")
			c.Close()
			return "", true
		case "WAIT":
			return ":1\r\n", true
		}
		return g.reply(c, args)
	})
	c := startProxy(t, g.fakeServer, nil).client()
	play(t, c, []string{"MULTI", "SUBSCRIBE c", "RESET", "SET k v", "WAIT 1 0"}, false)
	g.mu.Lock()
	defer g.mu.Unlock()
	if asked["WAIT"] != asked["SET"] {
		t.Errorf("wrote on %d, asked %d", asked["SET"], asked["WAIT"])
	}
}

// What sets a connection up is not answered with an error of the proxy's: where its reply, or that
// to an earlier command, is lost, the client's connection ends.
func TestLostSetUpEndsTheConnection(t *testing.T) {
	const unknown = "-" + textUnknown + "\r\n"
	long := strings.Repeat("x", largeCommand)
	for _, setUp := range [][]string{
		{"SELECT", "3"}, {"SELECT", "x"}, {"HELLO", "3"}, {"HELLO", "4"}, {"AUTH", "eve", "right"}, {"AUTH", "a", "b", "c"},
		{"SUBSCRIBE", "c"}, {"CLIENT", "TRACKING", "ON"}, {"MONITOR"}, {"SUBSCRIBE", long}, {"AUTH", "eve", long},
	} {
		for _, lead := range []string{"", "WATCH k", "MULTI"} {
			t.Run(fmt.Sprintf("%.40v after %s", setUp, lead), func(t *testing.T) {
				g := startTransactor(t)
				g.hushed = "LOST" // not known, so that it is alone on its connection
				c := startProxy(t, g.fakeServer, nil).client()
				if lead != "" {
					expect(t, c, "+OK\r\n", strings.Split(lead, " ")...)
				}
				sent := make(chan error, 1)
				go func() {
					sent <- c.Send(redistest.Command("LOST") + redistest.Command(setUp...) + redistest.Command("INCR", "k"))
				}()
				g.await(t, "LOST", 1)
				g.cut("private")
				if got, err := c.ReadReply(); got != unknown {
					t.Errorf("%q, %v", got, err)
				}
				expectGone(t, c)
				<-sent // the connection may have ended before it took all
			})
		}
	}
	for _, setUp := range []string{"SELECT 3", "SELECT x", "HELLO 3", "HELLO 4", "AUTH eve right", "AUTH a b c", "RESET x"} {
		for _, lead := range []string{"", "WATCH k", "MULTI"} {
			if lead == "" && (setUp == "SELECT 3" || setUp == "HELLO 3" || setUp == "AUTH eve right") {
				continue // not sent as they are
			}
			t.Run(fmt.Sprintf("%s itself after %s", setUp, lead), func(t *testing.T) {
				g := startTransactor(t)
				c := startProxy(t, g.fakeServer, nil).client()
				if lead != "" {
					expect(t, c, "+OK\r\n", strings.Split(lead, " ")...)
				}
				g.hush(setUp)
				if err := c.Send(setUp + "\r\n" + redistest.Command("INCR", "k")); err != nil {
					t.Fatal(err)
				}
				g.await(t, setUp, 1)
				g.cut("private")
				expectGone(t, c)
			})
		}
	}
}

func (g *transactor) hush(command string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hushed = command
}

// expectGone waits for the end of a client's connection, on which nothing comes any more.
func expectGone(t *testing.T, c *redistest.Client) {
	t.Helper()
	if got, err := c.ReadReply(); err == nil || got != "" {
		t.Errorf("instead of the end: %q, %v", got, err)
	}
}

// The reply to EXEC is read along however it is cut.
func TestElements(t *testing.T) {
	for reply, want := range map[string]string{
		"*3\r\n+OK\r\n-ERR *no\r\n%1\r\n$5\r\nproto\r\n:3\r\n": "+-%",
		"*2\r\n*2\r\n*1\r\n:1\r\n+a\r\n$4\r\n\r\n+a\r\n":       "*$",
		"*0\r\n": "", "*-1\r\n": "", "_\r\n": "", "-EXECABORT x\r\n": "", "+QUEUED\r\n": "",
	} {
		for size := 1; size <= len(reply); size++ {
			e := new(elements)
			for b := bytes.NewBufferString(reply); b.Len() > 0; {
				e.read(b.Next(size))
			}
			if string(e.kinds) != want {
				t.Errorf("%q by %d: %q, want %q", reply, size, e.kinds, want)
			}
		}
	}
}

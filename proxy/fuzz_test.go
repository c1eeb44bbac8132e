package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"streamproxy/batcher"
	"streamproxy/internal/redistest"
)

// FuzzSession plays steps, one a byte, on two clients of one proxy before a server
// that keeps the state of connections as Redis does: pipelines cut anywhere, commands
// of every class, transactions, lost connections, clients that leave in the middle.
// Each reply must be the one of the client's own next command, and when the clients
// have left, nothing of them may be left in the proxy. When a connection was cut, an
// error may stand in a reply's place; then the rest is held to order and ownership.
func FuzzSession(f *testing.F) {
	for _, steps := range []string{
		"\x00\x01\x0c\x0d", "\x03\x00\x02\x04\x0c\x0d\x00\x0c\x0d", "\x06\x03\x07\x00\x04\x00\x0d", "\x08\x18\x03\x0e\x08\x0d",
		"\x0a\x00\x0c\x0a\x09\x0d", "\x10\x00\x11\x01\x1c\x0c\x1d\x0d", "\x00\x0c\x0f\x00\x0d", "\x03\x00\x0c\x1f\x04\x0d", "\x0b\x3e\x00\x0e\x00\x0d",
		"\x00\x2f\x00\x0d", "\x03\x0c\x3f", "\x09\x09\x0c\x0f\x09\x0d", "\x3e\x00\x0e\x07\x00\x0d", "\x07\x00\x1e\x00\x1d\x5e\x00\x0d",
	} {
		f.Add([]byte(steps), uint8(len(steps)))
	}
	server := startFake(f)
	m := &machine{conns: map[*fakeConn]*serverState{}}
	server.script(m.answer)
	p := startProxy(f, server, func(c *Config) { c.PrivateMax = 4 })
	f.Fuzz(func(t *testing.T, steps []byte, cut uint8) {
		if len(steps) > 64 {
			return // more than is worth the time
		}
		g := &game{t: t, p: p, server: server, cut: int(cut%23) + 1, faults: new(bool)}
		for _, b := range steps {
			g.step(b)
		}
		for _, c := range g.players {
			c.end(len(steps)%2 == 0)
		}
		g.settle()
	})
}

// machine is the part of Redis that the steps need: per connection a database and a
// transaction.
type machine struct{ conns map[*fakeConn]*serverState }

type serverState struct {
	db     string
	multi  bool
	queued [][]string
}

// answer implements fakeServer.answer; it is called with the server's lock.
func (m *machine) answer(c *fakeConn, args []string) (string, bool) {
	st := m.conns[c]
	if st == nil {
		st = &serverState{db: "0"}
		m.conns[c] = st
	}
	name := strings.ToUpper(args[0])
	switch {
	case st.multi && name != "EXEC" && name != "DISCARD" && name != "RESET" && name != "QUIT" && name != "MULTI" && name != "WATCH":
		st.queued = append(st.queued, args)
		return "+QUEUED\r\n", true
	case name == "CLIENT", name == "HELLO", name == "INFO":
		return "", false
	}
	return m.run(c, st, name, args)
}

func (m *machine) run(c *fakeConn, st *serverState, name string, args []string) (string, bool) {
	switch name {
	case "ECHO", "FOO":
		return bulkReply(args[1] + "@" + st.db), true
	case "BLPOP":
		return "*2\r\n" + bulkReply(args[1]) + bulkReply(args[1]+"@"+st.db), true
	case "SELECT":
		st.db = args[1]
		return "+OK\r\n", true
	case "MULTI":
		if st.multi {
			return "-ERR MULTI calls can not be nested\r\n", true
		}
		st.multi = true
		return "+OK\r\n", true
	case "WATCH":
		if st.multi {
			return "-ERR WATCH inside MULTI is not allowed\r\n", true
		}
		return "+OK\r\n", true
	case "DISCARD":
		if !st.multi {
			return "-ERR DISCARD without MULTI\r\n", true
		}
		st.multi, st.queued = false, nil
		return "+OK\r\n", true
	case "EXEC":
		return m.exec(c, st), true
	case "RESET":
		*st = serverState{db: "0"}
		return "+RESET\r\n", true
	case "SUBSCRIBE":
		return "*3\r\n" + bulkReply("subscribe") + bulkReply(args[1]) + ":1\r\n", true
	case "QUIT":
		_, _ = io.WriteString(c, "+OK\r\n")
		_ = c.Close()
		return "", true
	}
	return "", false
}

func (m *machine) exec(c *fakeConn, st *serverState) string {
	if !st.multi {
		return "-ERR EXEC without MULTI\r\n"
	}
	list := st.queued
	st.multi, st.queued = false, nil
	reply := fmt.Sprintf("*%d\r\n", len(list))
	for _, args := range list {
		one, _ := m.run(c, st, strings.ToUpper(args[0]), args)
		reply += one
	}
	return reply
}

// game is one run of steps.
type game struct {
	t       *testing.T
	p       *testProxy
	server  *fakeServer
	cut     int // bytes a write
	faults  *bool
	players [2]*player
	uid     int
}

// player is a client, and what a client directly at the server would see. It is the
// same machine that answers there.
type player struct {
	*game
	c        *redistest.Client
	id       int
	mirror   machine
	self     fakeConn // the mirror's only connection
	unsent   strings.Builder
	want     []string
	name     string
	pinned   bool
	over     bool // QUIT was sent, or the connection has ended
	lastSeen int
}

// step plays one byte: the low bits are the step, the next one chooses the client, the
// rest the variant.
func (g *game) step(b byte) {
	i := int(b >> 4 & 1)
	c := g.players[i]
	if c == nil || c.over {
		if c != nil {
			c.end(false)
		}
		c = &player{game: g, id: i, mirror: machine{conns: map[*fakeConn]*serverState{}}}
		c.connect()
		g.players[i] = c
	}
	g.uid++
	id := fmt.Sprintf("<%d:%d>", i, g.uid)
	variant := int(b >> 5)
	switch b & 15 {
	case 0, 1:
		c.command("ECHO", id)
	case 2:
		c.command("FOO", id)
	case 3:
		c.command("MULTI")
	case 4:
		c.command("EXEC")
	case 5:
		c.command("DISCARD")
	case 6:
		c.command("WATCH", id)
	case 7:
		c.command("SELECT", strconv.Itoa(variant))
	case 8:
		c.named(variant)
	case 9:
		c.command("BLPOP", id, "1")
	case 10:
		c.command("ECHO", id+strings.Repeat("x", 60<<10+variant<<11))
	case 11:
		c.inline(id)
	case 12:
		c.flush()
	case 13:
		c.read()
	case 14:
		c.odd(variant)
	case 15:
		c.fault(variant)
	}
}

func (c *player) connect() {
	var err error
	if c.c, err = redistest.Dial(c.p.addr); err != nil {
		c.t.Fatal(err)
	}
	c.c.Timeout = patience
}

func (c *player) multi() bool {
	st := c.mirror.conns[&c.self]
	return st != nil && st.multi
}

// command queues a command for sending, with the reply that it must get.
func (c *player) command(args ...string) {
	c.unsent.WriteString(redistest.Command(args...))
	c.expect(args)
}

func (c *player) expect(args []string) {
	want, _ := c.mirror.answer(&c.self, args)
	c.want = append(c.want, want)
}

func (c *player) inline(id string) {
	c.unsent.WriteString("ECHO  " + id + "\r\n")
	c.expect([]string{"ECHO", id})
}

// named uses what the proxy answers by itself.
func (c *player) named(variant int) {
	if c.multi() || c.pinned {
		return
	}
	if variant%2 == 0 {
		c.name = "name" + strconv.Itoa(c.uid) // not stamped: it is answered again and again
		c.unsent.WriteString(redistest.Command("CLIENT", "SETNAME", c.name))
		c.want = append(c.want, "+OK\r\n")
		return
	}
	c.unsent.WriteString(redistest.Command("CLIENT", "GETNAME"))
	if c.name == "" {
		c.want = append(c.want, "$-1\r\n")
	} else {
		c.want = append(c.want, bulkReply(c.name))
	}
}

// odd are the commands that change what a session is.
func (c *player) odd(variant int) {
	switch {
	case variant == 0 || c.multi():
		c.command("RESET")
		c.name, c.pinned = "", false
	case variant == 1:
		c.command("SUBSCRIBE", "ch")
		c.pinned = true
	case variant == 2:
		c.unsent.WriteString(redistest.Command("QUIT"))
		c.want = append(c.want, "+OK\r\n")
		c.flush()
		c.read()
		c.over = true
	}
}

// fault breaks something.
func (c *player) fault(variant int) {
	switch variant {
	case 0, 1:
		c.flush()
		*c.faults = true
		c.server.cut([]string{"lane", "private"}[variant])
	case 2: // leaves in the middle of a command
		c.unsent.WriteString("*2\r\n$4\r\nECHO\r\n$90000\r\nabc")
		c.flush()
		c.over = true
	case 3: // hangs up without a word
		c.flush()
		c.over = true
		_ = c.c.Conn.(*net.TCPConn).SetLinger(0)
	}
}

// flush sends what is queued, in pieces.
func (c *player) flush() {
	b := c.unsent.String()
	c.unsent.Reset()
	for pieces := 0; len(b) > 0; pieces++ {
		n := min(len(b), c.cut)
		if pieces > 40 {
			n = len(b)
		}
		if err := c.c.Send(b[:n]); err != nil {
			if !*c.faults {
				c.t.Fatalf("client %d: %v", c.id, err)
			}
			c.over = true
			return
		}
		b = b[n:]
	}
}

// read takes the replies to all that was sent and compares.
func (c *player) read() {
	c.flush()
	for !c.over && len(c.want) > 0 {
		want := c.want[0]
		c.want = c.want[1:]
		got, err := c.c.ReadReply()
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			c.t.Fatalf("client %d: no reply; want %.80q", c.id, want)
		case err != nil && *c.faults:
			c.over = true
		case err != nil:
			c.t.Fatalf("client %d: %v after %.80q; want %.80q", c.id, err, got, want)
		case *c.faults:
			c.owned(got)
		case got != want:
			c.t.Fatalf("client %d: got %.80q, want %.80q", c.id, got, want)
		}
	}
}

var stamped = regexp.MustCompile(`<(\d+):(\d+)>`)

// owned checks what still holds when connections were lost: no reply of another's, and
// none of an earlier command.
func (c *player) owned(reply string) {
	for _, m := range stamped.FindAllStringSubmatch(reply, -1) {
		owner, _ := strconv.Atoi(m[1])
		n, _ := strconv.Atoi(m[2])
		if owner != c.id || n < c.lastSeen {
			c.t.Fatalf("client %d, after its command %d: %.80q", c.id, c.lastSeen, reply)
		}
		c.lastSeen = n
	}
}

// end leaves, after the last reply or before.
func (c *player) end(orderly bool) {
	if c == nil {
		return
	}
	if orderly {
		c.read()
	} else if !c.over {
		c.flush()
	}
	_ = c.c.Close()
}

// settle waits until nothing of the clients is left.
func (g *game) settle() {
	until(g.t, "the sessions to be over", func() bool {
		st := g.p.Stats()
		return st.Clients == 0 && st.BufferedBytes == 0 && st.PrivateBusy == 0 && st.InFlight == 0 && len(g.p.txSlots) == 0
	})
	until(g.t, "the end of what was cut", g.noGhosts)
	g.server.mu.Lock()
	g.server.seen = nil
	g.server.mu.Unlock()
}

// noGhosts reports whether the proxy has noticed the end of every connection that the
// server has cut: the next run must not pay for this one's faults.
func (g *game) noGhosts() bool {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	ghosts := 0
	g.p.conns.Range(func(k, _ any) bool {
		if g.server.conns[k.(*batcher.Conn).ID()] == nil {
			ghosts++
		}
		return true
	})
	return ghosts == 0
}

package proxy

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
	"streamproxy/reclaim"
)

// patience bounds every wait of these tests. It is reached only when they fail.
const patience = 15 * time.Second

// fakeServer greets like Redis and answers the rest as the test says.
type fakeServer struct {
	t     testing.TB
	front net.Listener
	wg    sync.WaitGroup

	mu   sync.Mutex
	cond sync.Cond
	// answer, if set, gives the reply to a command; handled false leaves it to standard.
	answer func(c *fakeConn, args []string) (reply string, handled bool)
	mute   bool // accepts, reads and answers nothing at all
	gone   bool // see leave
	conns  map[int64]*fakeConn
	ids    int64
	seen   []string // commands other than the greeting's, in order of arrival
}

type fakeConn struct {
	net.Conn
	id      int64
	blocked bool
	deaf    bool // nothing more is read from it for now
	db      string
	name    string
	kind    string // by the name it has been given
}

func startFake(t testing.TB) *fakeServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{t: t, front: l, conns: map[int64]*fakeConn{}}
	f.cond.L = &f.mu
	f.wg.Go(f.accept)
	t.Cleanup(func() {
		l.Close()
		f.cut("")
		f.hear()
		f.wg.Wait()
	})
	return f
}

func (f *fakeServer) accept() {
	for {
		nc, err := f.front.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.ids++
		c := &fakeConn{Conn: nc, id: f.ids}
		f.conns[c.id] = c
		if f.gone {
			c.Close()
		}
		f.mu.Unlock()
		f.wg.Go(func() { f.serve(c) })
	}
}

func (f *fakeServer) serve(c *fakeConn) {
	defer func() {
		c.Close()
		f.mu.Lock()
		delete(f.conns, c.id)
		f.cond.Broadcast()
		f.mu.Unlock()
	}()
	scan := resp.NewCommandScanner(resp.DefaultLimits())
	var have []byte
	buf := make([]byte, 64<<10)
	for {
		f.untilHeard(c)
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		have = append(have, buf[:n]...)
		for len(have) > int(scan.Size()) {
			_, done, err := scan.Scan(have[scan.Size():])
			if err != nil {
				if !strings.HasPrefix(string(have), nonsense) {
					f.t.Errorf("the proxy sent what is not a command: %v", err)
				}
				_, _ = io.WriteString(c, nonsenseReply)
				return
			}
			if !done {
				break
			}
			var args []string
			for _, a := range scan.Args() {
				args = append(args, string(have[a.Start:a.End]))
			}
			have = have[scan.Size():]
			scan.Reset()
			if _, err := io.WriteString(c, f.reply(c, args)); err != nil {
				return
			}
		}
	}
}

// untilHeard waits while nothing is read from a connection.
func (f *fakeServer) untilHeard(c *fakeConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c.deaf {
		f.cond.Wait()
	}
}

// hear reads from all connections again.
func (f *fakeServer) hear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.deaf = false
	}
	f.cond.Broadcast()
}

func (f *fakeServer) reply(c *fakeConn, args []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mute {
		return ""
	}
	if f.answer != nil {
		if r, handled := f.answer(c, args); handled {
			f.note(args)
			return r
		}
	}
	return f.standard(c, args)
}

func (f *fakeServer) note(args []string) {
	f.seen = append(f.seen, strings.Join(args, " "))
	f.cond.Broadcast()
}

// standard is how this server answers unless the test says otherwise.
func (f *fakeServer) standard(c *fakeConn, args []string) string {
	name := strings.ToUpper(args[0])
	if len(args) > 1 && name == "CLIENT" {
		name += " " + strings.ToUpper(args[1])
	}
	switch name {
	case "HELLO":
		if len(args) > 1 && args[1] == "3" {
			return fmt.Sprintf("%%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:%d\r\n", c.id)
		}
		return fmt.Sprintf("*6\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:%d\r\n", c.id)
	case "PING":
		if len(args) > 1 {
			return bulkReply(args[1])
		}
		return "+PONG\r\n"
	case "CLIENT SETNAME":
		c.name, c.kind = args[2], args[2][strings.LastIndex(args[2], ":")+1:]
		return "+OK\r\n"
	case "CLIENT LIST":
		id, _ := strconv.ParseInt(args[3], 10, 64)
		if listed := f.conns[id]; listed != nil {
			return bulkReply(fmt.Sprintf("id=%d name=%s age=0\n", id, listed.name))
		}
		return bulkReply("")
	case "CLIENT ID":
		return fmt.Sprintf(":%d\r\n", c.id)
	case "CLIENT UNBLOCK":
		f.note(args)
		id, _ := strconv.ParseInt(args[2], 10, 64)
		if b := f.conns[id]; b != nil && b.blocked {
			b.blocked = false
			io.WriteString(b, "*-1\r\n")
			return ":1\r\n"
		}
		return ":0\r\n"
	case "INFO", "CONFIG", "COMMAND":
		return "-ERR unknown command\r\n"
	case "SELECT":
		if n, _ := strconv.Atoi(args[1]); n > 15 {
			return "-ERR DB index is out of range\r\n"
		}
		c.db = args[1]
		return "+OK\r\n"
	}
	f.note(args)
	switch name {
	case "BLPOP":
		c.blocked = true
		return ""
	case "AUTH":
		return "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	}
	return bulkReply(args[min(1, len(args)-1)])
}

func bulkReply(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// script sets what is answered; see fakeServer.answer.
func (f *fakeServer) script(answer func(c *fakeConn, args []string) (string, bool)) {
	f.mu.Lock()
	f.answer = answer
	f.mu.Unlock()
}

func (f *fakeServer) setMute(mute bool) {
	f.mu.Lock()
	f.mute = mute
	f.mu.Unlock()
}

// cut ends the connections of a kind; "" is all.
func (f *fakeServer) cut(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		if kind == "" || c.kind == kind {
			c.Close()
		}
	}
}

// leave goes away for good, and returns when the proxy has lost all it had of it, a dial included
// that was under way.
func (f *fakeServer) leave(t *testing.T, p *testProxy) {
	t.Helper()
	f.front.Close()
	f.mu.Lock()
	f.gone = true // also for what has been accepted, and not been listed yet
	f.mu.Unlock()
	until(t, "the outage to be noticed", func() bool {
		f.cut("")
		dialing := p.dialing() // before what it may have brought is looked for
		st := p.Stats()
		return !dialing && st.Lanes == 0 && st.PrivateIdle == 0 && st.Control == 0
	})
}

// dialing reports whether a private connection is being made.
func (p *testProxy) dialing() bool {
	return slices.ContainsFunc(p.allHubs(), func(h *hub) bool {
		h.spares.mu.Lock()
		defer h.spares.mu.Unlock()
		return h.spares.dialing > 0
	})
}

// wait blocks until ok, which is called with the lock held.
func (f *fakeServer) wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		late = true
		f.cond.Broadcast()
	})
	defer timer.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	for !ok() && !late {
		f.cond.Wait()
	}
	if late {
		t.Fatalf("waited in vain for %s; seen %.300q", what, f.seen)
	}
}

// await blocks until the server has seen a command n times.
func (f *fakeServer) await(t *testing.T, command string, n int) {
	t.Helper()
	f.wait(t, command, func() bool { return f.countLocked(command) >= n })
}

func (f *fakeServer) countLocked(prefix string) (n int) {
	for _, s := range f.seen {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

func (f *fakeServer) count(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.countLocked(prefix)
}

// testProxy is a proxy before a fake server.
type testProxy struct {
	*Proxy
	t    testing.TB
	addr string
}

// startProxy starts a proxy on a free port, and ends it with the test.
func startProxy(t testing.TB, f *fakeServer, change func(*Config)) *testProxy {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Reclaim.Mode = reclaim.Off // its questions would travel among those that a test scripts
	cfg.Upstream = upstream.Target{Network: "tcp", Addr: f.front.Addr().String()}
	cfg.DrainIdle = time.Millisecond
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tp := &testProxy{Proxy: p, t: t, addr: ""}
	tp.serve("127.0.0.1:0")
	t.Cleanup(p.Close)
	return tp
}

func (p *testProxy) serve(spec string) {
	p.t.Helper()
	l, err := Listen(spec)
	if err != nil {
		p.t.Fatal(err)
	}
	p.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	p.t.Cleanup(func() {
		p.Close()
		if err := <-served; err != nil {
			p.t.Errorf("serve: %v", err)
		}
	})
}

func (p *testProxy) client() *redistest.Client {
	p.t.Helper()
	c, err := redistest.Dial(p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	c.Timeout = patience
	p.t.Cleanup(func() { c.Close() })
	return c
}

// expect sends one command and compares its reply.
func expect(t *testing.T, c *redistest.Client, want string, args ...string) {
	t.Helper()
	got, err := c.Do(args...)
	if err != nil || got != want {
		t.Errorf("%v: got %.200q, %v; want %.200q", args, got, err, want)
	}
}

// expectEnd waits for the orderly end of a client's connection.
func expectEnd(t *testing.T, c *redistest.Client) {
	t.Helper()
	if got, err := c.ReadReply(); err != io.EOF || got != "" {
		t.Errorf("instead of the end: %q, %v", got, err)
	}
}

// until polls for what no channel tells.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	timeout := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// otherHub is the hub of a database where nobody is yet.
func (p *testProxy) otherHub() *hub {
	key := p.defaultKey()
	key.DB = 5
	return p.hubOf(key)
}

//go:build operations

package operations

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"streamproxy/internal/proxytest"
	"streamproxy/internal/redistest"
)

// guests are the clients that hold state at the server or wait there, while others load it: one
// that is blocked, one that is subscribed, one within MULTI, and a stream's worker with its
// producer.
type guests struct {
	t                          *testing.T
	blocked, subscribed, multi *redistest.Client
	worker                     *worker
}

// invite connects them and waits until each is where it should be.
func invite(t *testing.T, server *redistest.Server, p *proxytest.Process) *guests {
	t.Helper()
	g := &guests{t: t, blocked: p.Client(), subscribed: p.Client(), multi: p.Client()}
	expect(t, g.subscribed, "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n", "SUBSCRIBE", "news")
	expect(t, g.multi, "+OK\r\n", "MULTI")
	expect(t, g.multi, "+QUEUED\r\n", "SET", "never", "1")
	if err := g.blocked.SendCommand("BLPOP", "nothing", "0"); err != nil {
		t.Fatal(err)
	}
	proxytest.Eventually(t, "a blocked client", func() bool { return server.Info("clients", "blocked_clients") == "1" })
	g.worker = hire(t, server, p)
	proxytest.Eventually(t, "a worker that has read", func() bool {
		return strings.Contains(server.Do("XINFO", "CONSUMERS", "work", "group"), "worker")
	})
	return g
}

// leave checks what each of them is told at the end of a drain.
func (g *guests) leave(server *redistest.Server) {
	g.t.Helper()
	if got, err := g.blocked.ReadReply(); err != nil || got != "*-1\r\n" {
		g.t.Errorf("the blocked client got %q, %v", got, err)
	}
	for name, c := range map[string]*redistest.Client{"blocked": g.blocked, "subscribed": g.subscribed, "within MULTI": g.multi} {
		if got, err := c.ReadReply(); got != "" || !errors.Is(err, io.EOF) {
			g.t.Errorf("the client that is %s got %q, %v, want the end", name, got, err)
		}
	}
	if got := server.Do("EXISTS", "never"); got != ":0\r\n" {
		g.t.Error("what was queued has been executed without EXEC")
	}
	g.worker.check(server)
}

// worker reads a stream as one of a group, acknowledges, and keeps a book.
type worker struct {
	t     *testing.T
	added int // entries of the stream
	acked int
	read  map[string]bool // entries that were read and not acknowledged
	last  string          // the last reply that was no entry
	done  chan struct{}   // closed when its connection has ended
	stop  chan struct{}   // ends the producer
	made  chan struct{}   // closed when the producer has ended
}

// hire starts a worker, and a producer over another connection that adds entries as fast as it is
// answered, until rest is called.
func hire(t *testing.T, server *redistest.Server, p *proxytest.Process) *worker {
	t.Helper()
	server.Do("XGROUP", "CREATE", "work", "group", "$", "MKSTREAM")
	w := &worker{t: t, read: map[string]bool{}, done: make(chan struct{}), stop: make(chan struct{}), made: make(chan struct{})}
	conn, producer := p.Client(), p.Client()
	go func() {
		defer close(w.done)
		w.work(conn)
	}()
	go func() {
		defer close(w.made)
		for {
			select {
			case <-w.stop:
				return
			default:
			}
			if got, err := producer.Do("XADD", "work", "*", "n", strconv.Itoa(w.added)); err != nil || got[0] != '$' {
				t.Errorf("XADD: %q, %v", got, err)
				return
			}
			w.added++
		}
	}()
	return w
}

// rest ends the producer.
func (w *worker) rest() {
	close(w.stop)
	<-w.made
}

// work reads and acknowledges until the connection ends.
func (w *worker) work(conn *redistest.Client) {
	defer func() { _ = conn.Close() }()
	conn.Timeout = 2 * proxytest.Patience
	for {
		got, err := conn.Do("XREADGROUP", "GROUP", "group", "worker", "COUNT", "10", "BLOCK", "0", "STREAMS", "work", ">")
		if err != nil {
			return
		}
		ids := entryIDs(got)
		if len(ids) == 0 {
			w.last = got
			continue
		}
		for _, id := range ids {
			w.read[id] = true
		}
		if got, err := conn.Do(append([]string{"XACK", "work", "group"}, ids...)...); err == nil && got == ":"+strconv.Itoa(len(ids))+"\r\n" {
			w.acked += len(ids)
			clear(w.read)
		} else if err == nil {
			w.last = got
		}
	}
}

// entryIDs finds the ids in the reply to a read of one stream.
func entryIDs(reply string) (ids []string) {
	for _, line := range strings.Split(reply, "\r\n") {
		if ms, seq, found := strings.Cut(line, "-"); found && ms != "" && seq != "" && strings.Trim(ms+seq, "0123456789") == "" {
			ids = append(ids, line)
		}
	}
	return ids
}

// check waits for the end of the worker's connection: its read was called back, and every entry
// that the server has assigned to it was read by it.
func (w *worker) check(server *redistest.Server) {
	w.t.Helper()
	<-w.done
	if w.last != "*-1\r\n" && w.last != stopping {
		w.t.Errorf("the worker's last reply is %q, want a null", w.last)
	}
	for _, line := range strings.Split(server.Do("XPENDING", "work", "group", "-", "+", "100000"), "\r\n") {
		if strings.Contains(line, "-") && !w.read[line] {
			w.t.Errorf("entry %s was assigned to the worker and never read by it", line)
		}
	}
	if w.added == 0 || w.acked+len(w.read) != w.added {
		w.t.Errorf("%d entries were added, %d acknowledged, %d read", w.added, w.acked, len(w.read))
	}
}

func expect(t *testing.T, c *redistest.Client, want string, args ...string) {
	t.Helper()
	if got, err := c.Do(args...); err != nil || got != want {
		t.Fatalf("%v: got %q, %v, want %q", args, got, err, want)
	}
}

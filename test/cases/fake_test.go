//go:build cases

package cases

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a server that greets like Redis and answers nothing else by itself: the test gets each
// command and writes what it wants, when it wants, on that command's connection.
type fake struct {
	t        testing.TB
	addr     string
	requests chan request

	mu     sync.Mutex
	front  net.Listener
	conns  map[net.Conn]bool
	dials  int
	closed bool
	rude   bool // closes what it accepts
	wg     sync.WaitGroup
}

// request is one command that reached a fake.
type request struct {
	conn net.Conn
	args []string
}

// answer writes raw bytes to the request's connection in one write.
func (r request) answer(raw string) error {
	_, err := io.WriteString(r.conn, raw)
	return err
}

// fakes are the addresses of scripted upstreams.
var fakes sync.Map

// startFake listens on a free port until the test ends.
func startFake(t testing.TB) *fake {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{
		t: t, front: front, addr: front.Addr().String(),
		requests: make(chan request, 64<<10), conns: map[net.Conn]bool{},
	}
	fakes.Store(f.addr, true)
	f.wg.Go(f.accept)
	t.Cleanup(func() {
		fakes.Delete(f.addr)
		f.vanish()
		f.wg.Wait()
	})
	return f
}

func (f *fake) accept() {
	for {
		c, err := f.front.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.dials++
		f.conns[c] = true
		closed, rude := f.closed, f.rude
		f.mu.Unlock()
		switch {
		case closed:
			_ = c.Close()
			return
		case rude:
			_ = c.Close()
			continue
		}
		f.wg.Go(func() { f.serve(c) })
	}
}

// serve greets and passes every other command to the test.
func (f *fake) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		switch strings.ToUpper(strings.Join(args[:min(len(args), 2)], " ")) {
		case "PING":
			_, err = io.WriteString(c, "+PONG\r\n")
		case "CLIENT SETNAME":
			_, err = io.WriteString(c, "+OK\r\n")
		case "CLIENT ID", "INFO SERVER", "CONFIG GET", "COMMAND", "HELLO", "HELLO 2", "HELLO 3", "TIME":
			_, err = fmt.Fprintf(c, "-ERR unknown command '%s'\r\n", args[0])
		default:
			f.requests <- request{c, args}
		}
		if err != nil {
			return
		}
	}
}

// readCommand reads one multibulk command.
func readCommand(r *bufio.Reader) (args []string, err error) {
	number := func(kind byte) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if line[0] != kind {
			return 0, fmt.Errorf("not a command: %.40q", line)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number('*')
	if err != nil {
		return nil, err
	}
	for range n {
		size, err := number('$')
		if err != nil {
			return nil, err
		}
		arg := make([]byte, size+2)
		if _, err := io.ReadFull(r, arg); err != nil {
			return nil, err
		}
		args = append(args, string(arg[:size]))
	}
	return args, nil
}

// next waits for the next command and fails the test unless it is the one wanted.
func (f *fake) next(want ...string) request {
	f.t.Helper()
	select {
	case r := <-f.requests:
		if slices.Equal(r.args, []string{"DISCARD"}) && want[0] != "DISCARD" {
			return f.next(want...) // of a client that has left its transaction
		}
		if !slices.Equal(r.args, want) {
			f.t.Fatalf("the server got %q, want %q", r.args, want)
		}
		return r
	case <-time.After(patience):
		f.t.Fatalf("the server never got %q", want)
		return request{}
	}
}

// cut closes every connection that is there now.
func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close()
	}
	clear(f.conns)
}

// hangUp cuts every connection, and from now on each new one at once.
func (f *fake) hangUp() {
	f.mu.Lock()
	f.rude = true
	f.mu.Unlock()
	f.cut()
}

// vanish cuts every connection and refuses new ones.
func (f *fake) vanish() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	_ = f.front.Close()
	f.cut()
}

// dialled is how many connections have been accepted.
func (f *fake) dialled() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dials
}

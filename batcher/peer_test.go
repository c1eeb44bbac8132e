package batcher

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"streamproxy/internal/resp"
)

// patience bounds every wait of these tests. It is reached only when they fail.
const patience = 10 * time.Second

// peer is the server's end of a connection under test. It does what the script of
// the test says and nothing by itself.
type peer struct {
	t    *testing.T
	nc   *net.UnixConn
	scan *resp.CommandScanner
	have []byte
}

// connect returns a connection over a pair of sockets, and its other end. Both are
// closed when the test ends.
func connect(t *testing.T, opts Options) (*Conn, *peer) {
	t.Helper()
	near, far := socketpair(t)
	c := NewConn(near, opts)
	t.Cleanup(func() {
		c.Close()
		await(t, c.Done(), "the connection to end")
	})
	return c, &peer{t: t, nc: far, scan: newScanner()}
}

func newScanner() *resp.CommandScanner { return resp.NewCommandScanner(resp.DefaultLimits()) }

func socketpair(t *testing.T) (near, far *net.UnixConn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]*net.UnixConn, len(fds))
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		nc, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		ends[i] = nc.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// take reads n commands and returns their second arguments, or the first where
// there is only one.
func (p *peer) take(n int) []string {
	p.t.Helper()
	p.nc.SetReadDeadline(time.Now().Add(patience))
	got, err := p.read(n)
	if err != nil {
		p.t.Fatalf("peer: %v after %d of %d commands", err, len(got), n)
	}
	return got
}

// read is take for goroutines other than the test's.
func (p *peer) read(n int) (got []string, err error) {
	buf := make([]byte, 64<<10)
	for len(got) < n {
		_, done, err := p.scan.Scan(p.have[p.scanned():])
		if err != nil {
			return got, err
		}
		if done {
			got = append(got, p.name())
			p.have = p.have[p.scan.Size():]
			p.scan.Reset()
			continue
		}
		k, err := p.nc.Read(buf)
		if err != nil {
			return got, err
		}
		p.have = append(p.have, buf[:k]...)
	}
	return got, nil
}

func (p *peer) scanned() int { return int(p.scan.Size()) }

func (p *peer) name() string {
	args := p.scan.Args()
	at := args[min(1, len(args)-1)]
	return string(p.have[at.Start:at.End])
}

func (p *peer) send(raw string) {
	p.t.Helper()
	p.nc.SetWriteDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(p.nc, raw); err != nil {
		p.t.Fatalf("peer: %v", err)
	}
}

// echo answers every command with its name, to the end of the connection.
func (p *peer) echo() {
	for {
		names, err := p.read(1)
		if err != nil {
			return
		}
		if _, err := io.WriteString(p.nc, bulk(names[0])); err != nil {
			return
		}
	}
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// get encodes one GET for each key.
func get(keys ...string) []byte {
	var raw []byte
	for _, k := range keys {
		raw = resp.AppendCommand(raw, "GET", k)
	}
	return raw
}

func submit(t *testing.T, c *Conn, s Sink, keys ...string) {
	t.Helper()
	if err := c.Submit(s, nil, get(keys...), len(keys)); err != nil {
		t.Fatalf("submit %v: %v", keys, err)
	}
}

func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
}

// until polls for what no channel tells.
func until(t *testing.T, what string, ok func() bool) {
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

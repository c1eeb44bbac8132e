//go:build linux

package proxy

import (
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"streamproxy/internal/redistest"
)

// lateListener hands a connection over when it is told to.
type lateListener struct {
	net.Listener
	accepted chan net.Conn
	now      chan struct{}
}

// Accept implements net.Listener.
func (l lateListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err == nil {
		l.accepted <- nc
		<-l.now
	}
	return nc, err
}

// What a client that has reset its connection leaves in its socket may be megabytes: it is
// carried out no further than until the first answer cannot be written, as at Redis.
func TestDepartedAreNotReadToTheEnd(t *testing.T) {
	f := startFake(t)
	var commands atomic.Int64
	p := startProxy(t, f, func(c *Config) {
		c.Events.Commands = func(_ Class, n int) { commands.Add(int64(n)) }
	})
	inner, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := lateListener{inner, make(chan net.Conn, 1), make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	nc := (<-l.accepted).(*net.TCPConn)
	rc, err := nc.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.SetReadBuffer(4 << 20); err != nil {
		t.Fatal(err)
	}
	one := redistest.Command("CLIENT", "GETNAME")
	most := chunkSize/len(one) + 1
	all := strings.Repeat(one, 4*most)
	if _, err := c.Write([]byte(all)); err != nil {
		t.Fatal(err)
	}
	until(t, "all to have come", func() bool {
		n := 0
		err := rc.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		return err == nil && n == len(all)
	})
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
	until(t, "the reset", func() bool { return departed(rc) })
	close(l.now)
	until(t, "the session to begin", func() bool { return commands.Load() > 0 })
	until(t, "the session to end", func() bool { return p.sessions.len() == 0 })
	if n := commands.Load(); n > int64(most) {
		t.Errorf("%d commands of %d were carried out", n, 4*most)
	}
	p.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func departed(rc syscall.RawConn) (gone bool) {
	return rc.Control(func(fd uintptr) { gone = peerReset(int(fd)) }) == nil && gone
}

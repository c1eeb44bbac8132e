package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// caller is one connection with one pipeline, which it sends again and again.
type caller struct {
	fd      int
	request []byte // the pipeline, encoded
	reply   []byte // what must come back, byte for byte
	unsent  []byte // the rest of request that the socket did not take
	got     int    // bytes of reply that have come
	since   int64  // when the pipeline under way was due, in nanoseconds; 0: none is under way
	due     []int64
}

func newCaller(p *Plan, number int) (*caller, error) {
	fd, err := connect(p.Addr)
	if err != nil {
		return nil, err
	}
	return newPipeline(p, number, fd), nil
}

// newPipeline is a caller on a connection that is there already.
func newPipeline(p *Plan, number, fd int) *caller {
	c := &caller{fd: fd}
	for i := range p.Pipeline {
		command, reply := p.Request(number, i)
		c.request = append(c.request, command...)
		c.reply = append(c.reply, reply...)
	}
	return c
}

// send starts the pipeline. It reports whether the socket took all of it.
func (c *caller) send(since int64) (whole bool, err error) {
	c.since, c.got, c.unsent = since, 0, c.request
	return c.flush()
}

func (c *caller) flush() (whole bool, err error) {
	for len(c.unsent) > 0 {
		n, err := unix.Write(c.fd, c.unsent)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("write: %w", err)
		default:
			c.unsent = c.unsent[n:]
		}
	}
	return true, nil
}

// receive reads once into buf and reports whether the pipeline is answered. Bytes that nobody
// asked for, or others than expected, are an error: a wrong reply makes every figure worthless.
func (c *caller) receive(buf []byte) (done bool, err error) {
	n, err := unix.Read(c.fd, buf)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read: %w", err)
	case n == 0:
		return false, fmt.Errorf("read: %w", io.ErrUnexpectedEOF)
	}
	got, want := buf[:n], c.reply[c.got:]
	if c.since == 0 {
		want = nil
	}
	common := min(len(got), len(want))
	switch {
	case !bytes.Equal(got[:common], want[:common]):
		return false, fmt.Errorf("wrong reply %s instead of %s", excerpt(got), excerpt(want))
	case len(got) > common:
		return false, fmt.Errorf("a reply that nobody waits for: %s", excerpt(got[common:]))
	}
	c.got += n
	return common == len(want), nil
}

func excerpt(b []byte) string {
	const most = 80
	if len(b) > most {
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	}
	return fmt.Sprintf("%q", b)
}

// connect opens a non-blocking socket outside Go's poller, which would otherwise watch it too.
func connect(addr string) (int, error) {
	family, target, err := resolve(addr)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	if err := setup(fd, family, target); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("%s: %w", addr, err)
	}
	return fd, nil
}

func setup(fd, family int, target unix.Sockaddr) error {
	if err := unix.Connect(fd, target); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if family != unix.AF_UNIX {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return fmt.Errorf("nodelay: %w", err)
		}
	}
	return unix.SetNonblock(fd, true)
}

func resolve(addr string) (family int, target unix.Sockaddr, err error) {
	if strings.Contains(addr, "/") {
		return unix.AF_UNIX, &unix.SockaddrUnix{Name: addr}, nil
	}
	tcp, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return 0, nil, err
	}
	inet := &unix.SockaddrInet4{Port: tcp.Port}
	copy(inet.Addr[:], tcp.IP.To4())
	return unix.AF_INET, inet, nil
}

package upstream

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"streamproxy/internal/redistest"
)

func TestDialSocketOptions(t *testing.T) {
	s := redistest.Start(t)
	conn, _, err := dialerFor(t, s.URL()).Dial(t.Context(), Key{Proto: 2}, "lane")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	options := []struct {
		name               string
		level, opt, expect int
	}{
		{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 30},
		{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30000},
	}
	for _, o := range options {
		var got int
		var getErr error
		if err := raw.Control(func(fd uintptr) { got, getErr = unix.GetsockoptInt(int(fd), o.level, o.opt) }); err != nil {
			t.Fatal(err)
		}
		if getErr != nil || got != o.expect {
			t.Errorf("%s is %d, %v; want %d", o.name, got, getErr, o.expect)
		}
	}
}

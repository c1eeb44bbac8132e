package rawio

import (
	"syscall"
	"testing"
)

func TestReadAndWrite(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if err := syscall.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 8)
	if _, err := Read(fds[0], buf); err != syscall.EAGAIN {
		t.Errorf("nothing to read: %v", err)
	}
	if n, err := Write(fds[1], []byte("hello")); n != 5 || err != nil {
		t.Errorf("wrote %d, %v", n, err)
	}
	if n, err := Read(fds[0], buf); n != 5 || err != nil || string(buf[:5]) != "hello" {
		t.Errorf("read %d %q, %v", n, buf[:max(n, 0)], err)
	}
	if err := syscall.Close(fds[1]); err != nil {
		t.Fatal(err)
	}
	if n, err := Read(fds[0], buf); n != 0 || err != nil {
		t.Errorf("at the end: %d, %v", n, err)
	}
	if n, err := Write(fds[0], buf); n >= 0 || err != syscall.EPIPE {
		t.Errorf("to nobody: %d, %v", n, err)
	}
	if err := syscall.Close(fds[0]); err != nil {
		t.Fatal(err)
	}
}

package proxy

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"streamproxy/internal/redistest"
)

// socketPath is a path in a folder of the test's own, no longer than a socket's may be.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "listen")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s.sock")
}

// leaveStale leaves a socket file behind which nobody listens.
func leaveStale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode()&fs.ModeSocket == 0 {
		t.Fatal("the test left no stale socket")
	}
}

// A proxy that ends, however often it is told to, leaves a path alone that another has
// taken over.
func TestListenUnixTakenOver(t *testing.T) {
	path := socketPath(t)
	first, err := Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second, err := Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		first.Close()
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatalf("the other's socket has gone: %v", err)
		}
		c.Close()
	}
	second.Close()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file has been left: %v", err)
	}
	third, err := Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	second.Close() // the file's number may be the same again
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the other's socket has gone: %v", err)
	}
}

// What has been put at the path between the look and the removal stays.
func TestRemoveSame(t *testing.T) {
	path := socketPath(t)
	leaveStale(t, path)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := removeSame(path, before); err != nil {
		t.Errorf("nothing is there: %v", err)
	}
	l, err := Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := removeSame(path, before); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("another's file was removed: %v", err)
	}
	if err := removeSame(path+".old", before); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + ".old"); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

// One who listens but has no room for another caller is not taken for gone.
func TestListenUnixWhereTheQueueIsFull(t *testing.T) {
	path := socketPath(t)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for {
		c, err := net.Dial("unix", path)
		if errors.Is(err, syscall.EAGAIN) {
			break
		}
		if err != nil {
			t.Skipf("a full queue is told by %v here", err)
		}
		defer c.Close()
	}
	if _, err := Listen("unix://" + path); err == nil || !strings.Contains(err.Error(), "somebody may listen") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the other's socket has gone: %v", err)
	}
}

// Unix sockets: their mode, one path with one listener, a stale file, a file that is
// something else.
func TestListenUnix(t *testing.T) {
	path := socketPath(t)
	l, err := Listen("unix://" + path + "?mode=0640")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode().Perm(), err)
	}
	if _, err := Listen("unix://" + path); err == nil || !strings.Contains(err.Error(), "somebody listens") {
		t.Errorf("a second listener: %v", err)
	}
	l.Close()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file has been left: %v", err)
	}
	leaveStale(t, path)
	f := startFake(t)
	p := startProxy(t, f, nil)
	p.serve("unix://" + path)
	c, err := redistest.Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	expect(t, c, bulkReply("a"), "GET", "a")

	file := path + ".file"
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix://" + file); err == nil {
		t.Error("listening on a plain file")
	}
	if b, _ := os.ReadFile(file); string(b) != "precious" {
		t.Error("a plain file was removed")
	}
}

func TestListenErrors(t *testing.T) {
	for _, spec := range []string{"unix://", "unix:///tmp/x?mode=9", "unix:///tmp/x?mode=77777", "127.0.0.1:99999", "nonsense"} {
		if l, err := Listen(spec); err == nil {
			l.Close()
			t.Errorf("%s was accepted", spec)
		}
	}
}

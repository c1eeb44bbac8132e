package proxy

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Listen opens a listener: host:port, with an IPv6 host in brackets, or
// unix:///path?mode=0660. A socket file that nobody listens on any more is
// replaced, and one that has taken the listener's place is left alone when it closes.
func Listen(spec string) (net.Listener, error) {
	if !strings.HasPrefix(spec, "unix:") {
		return net.Listen("tcp", spec)
	}
	u, err := url.Parse(spec)
	if err != nil || u.Path == "" {
		return nil, fmt.Errorf("listen %q: want unix:///path?mode=0660", spec)
	}
	mode := uint64(0)
	if m := u.Query().Get("mode"); m != "" {
		if mode, err = strconv.ParseUint(m, 8, 12); err != nil {
			return nil, fmt.Errorf("listen %q: mode %q: want an octal number", spec, m)
		}
	}
	return listenUnix(u.Path, fs.FileMode(mode))
}

// socketListener listens at a path. The path is another's as soon as somebody has put
// something else there: a new proxy that took over from this one must not lose it when
// this one ends.
type socketListener struct {
	*net.UnixListener
	path string
	file fs.FileInfo // the path as it was made
	once sync.Once
}

// listenUnix opens a listener at path. A mode of 0 leaves the file as it was made.
func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if mode != 0 {
		err = os.Chmod(path, mode)
	}
	var file fs.FileInfo
	if err == nil {
		file, err = os.Stat(path)
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it would not look what is there
	return &socketListener{UnixListener: l, path: path, file: file}, nil
}

// Close implements net.Listener. While the socket is open, no other file is taken for its.
func (l *socketListener) Close() error {
	l.once.Do(func() { _ = removeSame(l.path, l.file) }) // what stays is stale, and will be replaced
	return l.UnixListener.Close()
}

// removeStale removes a socket file behind which nobody listens. Only a refusal says so:
// one who listens may have more callers waiting than fit, or may not be called by us.
func removeStale(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&fs.ModeSocket == 0 {
		return nil // nothing there, or not ours to remove: listening will say so
	}
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		_ = c.Close()
		return fmt.Errorf("listen unix %s: somebody listens there", path)
	case errors.Is(err, fs.ErrNotExist): // it has been removed since
		return nil
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("listen unix %s: somebody may listen there: %w", path, err)
	}
	return removeSame(path, info)
}

// removeSame removes path if it still leads to file, not to what another has put there.
func removeSame(path string, file fs.FileInfo) error {
	now, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !os.SameFile(now, file):
		return nil
	}
	return os.Remove(path)
}

package proxy

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// partings tells the readers of sessions that their clients have ended the connection.
// The runtime's poller tells of bytes and of the end behind them in one event, and a
// reader that stops at a short read, because a read that would only find nothing costs as
// much as one that finds a command, then never hears of the end. So a second poller, of
// the kernel, waits for ends alone. Bytes do not wake it: it costs a system call for each
// connection and none for a command.
//
// One goroutine, run, which ends with close.
type partings struct {
	find func(id int64) *session
	file *os.File

	mu sync.Mutex // guards fd against use after close
	fd int        // -1 once closed
}

func newPartings(find func(id int64) *session) (*partings, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("proxy: create a poller: %w", err)
	}
	// Non-blocking is what makes the runtime wait for it with its own poller; waiting for
	// events never blocks here either way.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("proxy: set up a poller: %w", err)
	}
	return &partings{find: find, fd: fd, file: os.NewFile(uintptr(fd), "epoll")}, nil
}

// watch has the end of a session's client told from now on; one that has come already is
// told at once. It ends with the connection. A kernel that refuses leaves the session to
// reads and writes that fail. A TLS reader reads until there is nothing left; it is told for
// the sake of what else it waits for.
func (g *partings) watch(s *session) {
	rc := s.rawConn()
	if rc == nil {
		return
	}
	event := unix.EpollEvent{
		Events: unix.EPOLLRDHUP | unix.EPOLLET,
		Fd:     int32(s.id), Pad: int32(s.id >> 32),
	}
	_ = rc.Control(func(fd uintptr) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.fd >= 0 {
			_ = unix.EpollCtl(g.fd, unix.EPOLL_CTL_ADD, int(fd), &event)
		}
	})
}

// run passes on what the kernel tells.
func (g *partings) run() {
	rc, err := g.file.SyscallConn()
	if err != nil {
		return // closed already
	}
	var events [64]unix.EpollEvent
	_ = rc.Read(func(fd uintptr) (done bool) { // ends with close
		for {
			n, err := unix.EpollWait(int(fd), events[:], 0)
			if err == unix.EINTR {
				continue
			}
			for _, e := range events[:max(n, 0)] {
				if s := g.find(int64(e.Pad)<<32 | int64(uint32(e.Fd))); s != nil {
					s.leaving()
				}
			}
			if n < len(events) {
				return false
			}
		}
	})
}

// lookAround is for systems that tell of no ends.
func (g *partings) lookAround(*registry) {}

func (g *partings) close() {
	g.mu.Lock()
	g.fd = -1
	g.mu.Unlock()
	_ = g.file.Close() // nothing is lost with it
}

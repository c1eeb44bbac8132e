package load

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Crowd is many connections that stay open between what they are made to do, for measuring what
// clients cost that say nothing. Its methods belong to one goroutine.
type Crowd struct{ fds []int }

// crowdLimit bounds one round of a crowd.
const crowdLimit = 2 * time.Minute

// Gather opens so many connections to addr.
func Gather(addr string, size int) (*Crowd, error) {
	c := &Crowd{}
	for i := range size {
		fd, err := connect(addr)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("connection %d of %d: %w", i, size, err)
		}
		c.fds = append(c.fds, fd)
	}
	return c, nil
}

// Round has every connection send the same pipeline at the same time and take the replies, which
// must be what request says, byte for byte. during, if set, is called between events, so that
// somebody can watch the round.
func (c *Crowd) Round(pipeline int, request func(caller, i int) (command, reply []byte), during func()) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := &generator{plan: Plan{Pipeline: pipeline, Request: request}, buf: make([]byte, 256<<10), start: time.Now(), phase: draining}
	var err error
	if g.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	defer func() { _ = unix.Close(g.epoll) }()
	same := newPipeline(&g.plan, 0, -1)
	for i, fd := range c.fds {
		one := *same // the bytes are shared, they are not changed
		one.fd = fd
		g.callers = append(g.callers, &one)
		if err := g.watch(unix.EPOLL_CTL_ADD, fd, i, unix.EPOLLIN); err != nil {
			return err
		}
	}
	for i := range g.callers {
		if err := g.send(i, g.now()); err != nil {
			return err
		}
	}
	events := make([]unix.EpollEvent, 512)
	for g.waiting > 0 {
		n, err := unix.EpollWait(g.epoll, events, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if err := g.handle(e); err != nil {
				return err
			}
		}
		if during != nil {
			during()
		}
		if time.Since(g.start) > crowdLimit {
			return fmt.Errorf("%d of %d connections wait after %v", g.waiting, len(c.fds), crowdLimit)
		}
	}
	return nil
}

// Close closes every connection.
func (c *Crowd) Close() {
	for _, fd := range c.fds {
		_ = unix.Close(fd)
	}
	c.fds = nil
}

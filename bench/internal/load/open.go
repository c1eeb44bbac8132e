package load

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// pacerToken stands for the pacer among the callers' numbers in epoll events.
const pacerToken = -1

// open connects everybody and watches those who send.
func (g *generator) open() error {
	var err error
	if g.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	for i := range g.plan.Callers {
		c, err := newCaller(&g.plan, i)
		if err != nil {
			return fmt.Errorf("caller %d: %w", i, err)
		}
		g.callers = append(g.callers, c)
		if err := g.watch(unix.EPOLL_CTL_ADD, c.fd, i, unix.EPOLLIN); err != nil {
			return err
		}
	}
	for i := range g.plan.Idle {
		fd, err := connect(g.plan.Addr)
		if err != nil {
			return fmt.Errorf("idle connection %d: %w", i, err)
		}
		g.idle = append(g.idle, fd)
	}
	if g.plan.Rate > 0 {
		if g.pacer, err = newPacer(g.plan.Rate/float64(g.plan.Pipeline), g.plan.Tick); err != nil {
			return err
		}
		return g.watch(unix.EPOLL_CTL_ADD, g.pacer.fd, pacerToken, unix.EPOLLIN)
	}
	return nil
}

func (g *generator) watch(op, fd, token int, events uint32) error {
	event := unix.EpollEvent{Events: events, Fd: int32(token)}
	if err := unix.EpollCtl(g.epoll, op, fd, &event); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

func (g *generator) close() {
	for _, c := range g.callers {
		_ = unix.Close(c.fd)
	}
	for _, fd := range g.idle {
		_ = unix.Close(fd)
	}
	if g.pacer != nil {
		g.pacer.close()
	}
	if g.epoll > 0 {
		_ = unix.Close(g.epoll)
	}
}

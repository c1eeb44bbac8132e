package load

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// pacer says how many pipelines are due. It ticks through a timerfd, which wakes epoll on time
// where Go's own timers are a millisecond late in a quiet process.
type pacer struct {
	fd     int
	rate   float64 // pipelines per nanosecond
	tick   time.Duration
	began  int64
	issued int64
	next   int // caller whose turn it is
}

func newPacer(perSecond float64, tick time.Duration) (*pacer, error) {
	if tick <= 0 {
		tick = time.Millisecond
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	return &pacer{fd: fd, rate: perSecond / 1e9, tick: tick}, nil
}

// begin starts the ticks; now is when the first period begins.
func (p *pacer) begin(now int64) error {
	p.began = now
	interval := unix.NsecToTimespec(int64(p.tick))
	if err := unix.TimerfdSettime(p.fd, 0, &unix.ItimerSpec{Interval: interval, Value: interval}, nil); err != nil {
		return fmt.Errorf("timerfd: %w", err)
	}
	return nil
}

// due clears the tick and returns how many pipelines fell due, and since when. A late tick's
// commands count from when the tick should have come: the generator's own delay is not hidden.
func (p *pacer) due(now int64) (n int64, since int64) {
	var expirations [8]byte
	if _, err := unix.Read(p.fd, expirations[:]); errors.Is(err, unix.EAGAIN) {
		return 0, now
	}
	total := int64(float64(now-p.began) * p.rate)
	n = total - p.issued
	p.issued = total
	return n, now - (now-p.began)%int64(p.tick)
}

func (p *pacer) close() { _ = unix.Close(p.fd) }

package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// Run carries a plan out on the calling goroutine's thread and returns when it is over: after
// Warmup and Duration, at the first wrong reply or broken connection, or when ctx ends.
func Run(ctx context.Context, p Plan) (Outcome, error) {
	if err := p.validate(); err != nil {
		return Outcome{}, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := &generator{plan: p, buf: make([]byte, 256<<10), start: time.Now()}
	defer g.close()
	if err := g.open(); err != nil {
		return Outcome{}, err
	}
	return g.run(ctx)
}

// phase is where a measurement stands.
type phase int

const (
	warming phase = iota
	counting
	draining // nothing new is sent; replies under way are awaited, so that the next side starts clean
	finished
)

// generator is a plan under way. Times are nanoseconds since start, beginning at 1: a caller's
// zero means that it is idle.
type generator struct {
	plan    Plan
	epoll   int
	callers []*caller
	idle    []int
	pacer   *pacer // nil without a rate
	buf     []byte
	start   time.Time

	phase     phase
	began     int64 // of counting
	lastHeard int64
	waiting   int // callers with a pipeline under way
	outcome   Outcome
	cpuBegan  time.Duration
}

func (g *generator) now() int64 { return int64(time.Since(g.start)) + 1 }

func (g *generator) run(ctx context.Context) (Outcome, error) {
	g.outcome.Latency = hdrhistogram.New(shortest, longest, digits)
	g.lastHeard = g.now()
	if err := g.begin(); err != nil {
		return Outcome{}, err
	}
	events := make([]unix.EpollEvent, 512)
	for {
		n, err := unix.EpollWait(g.epoll, events, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return Outcome{}, fmt.Errorf("epoll: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if err := g.handle(e); err != nil {
				return Outcome{}, err
			}
		}
		if ctx.Err() != nil {
			return Outcome{}, context.Cause(ctx)
		}
		if err := g.advance(); err != nil {
			return Outcome{}, err
		}
		if g.phase == finished {
			return g.outcome, nil
		}
	}
}

// begin makes the first sends, or has the pacer make them.
func (g *generator) begin() error {
	if g.pacer != nil {
		return g.pacer.begin(g.now())
	}
	for i := range g.callers {
		if err := g.send(i, g.now()); err != nil {
			return err
		}
	}
	return nil
}

// advance moves the measurement to its next phase when it is time.
func (g *generator) advance() error {
	now := g.now()
	switch {
	case g.phase == warming && now >= int64(g.plan.Warmup):
		g.phase, g.began = counting, now
		g.cpuBegan = threadCPU()
		g.edge(false)
	case g.phase == counting && now-g.began >= int64(g.plan.Duration):
		g.edge(true)
		g.outcome.Elapsed = time.Duration(now - g.began)
		g.outcome.CPU = threadCPU() - g.cpuBegan
		g.phase = draining
	case g.phase == draining && g.waiting == 0:
		g.phase = finished
	}
	if g.waiting > 0 && now-g.lastHeard > int64(stallLimit) {
		return fmt.Errorf("no reply for %v, %d callers wait", stallLimit, g.waiting)
	}
	return nil
}

func (g *generator) edge(end bool) {
	if g.plan.Edge != nil {
		g.plan.Edge(end)
	}
}

// handle serves one event: the pacer's tick, a socket that can take more, replies.
func (g *generator) handle(e unix.EpollEvent) error {
	if e.Fd == pacerToken {
		return g.tick()
	}
	number := int(e.Fd)
	c := g.callers[number]
	if e.Events&unix.EPOLLOUT != 0 {
		whole, err := c.flush()
		if err != nil {
			return fmt.Errorf("caller %d: %w", number, err)
		}
		if whole {
			if err := g.watch(unix.EPOLL_CTL_MOD, c.fd, number, unix.EPOLLIN); err != nil {
				return err
			}
		}
	}
	if e.Events&^unix.EPOLLOUT == 0 {
		return nil
	}
	done, err := c.receive(g.buf)
	if err != nil {
		return fmt.Errorf("caller %d: %w", number, err)
	}
	now := g.now()
	g.lastHeard = now
	if !done {
		return nil
	}
	return g.answered(number, now)
}

// answered counts a pipeline and lets its caller go on.
func (g *generator) answered(number int, now int64) error {
	c := g.callers[number]
	g.waiting--
	if g.phase == counting {
		g.outcome.Commands += int64(g.plan.Pipeline)
		if err := g.outcome.Latency.RecordValues(min(now-c.since, longest), int64(g.plan.Pipeline)); err != nil {
			return err
		}
	}
	c.since = 0
	if g.phase >= draining {
		return nil
	}
	if g.pacer == nil {
		return g.send(number, now)
	}
	if len(c.due) > 0 {
		since := c.due[0]
		c.due = c.due[1:]
		return g.send(number, since)
	}
	return nil
}

// tick hands what has fallen due to the callers in turn; one that is busy sends it later, and its
// latency counts from now on all the same.
func (g *generator) tick() error {
	n, since := g.pacer.due(g.now())
	if g.phase >= draining {
		return nil
	}
	for range n {
		number := g.pacer.next % len(g.callers)
		g.pacer.next++
		c := g.callers[number]
		if c.since != 0 {
			c.due = append(c.due, since)
			continue
		}
		if err := g.send(number, since); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) send(number int, since int64) error {
	c := g.callers[number]
	g.waiting++
	whole, err := c.send(since)
	if err != nil {
		return fmt.Errorf("caller %d: %w", number, err)
	}
	if !whole {
		return g.watch(unix.EPOLL_CTL_MOD, c.fd, number, unix.EPOLLIN|unix.EPOLLOUT)
	}
	return nil
}

// threadCPU returns the processor time of the calling thread, or 0 where that is not told.
func threadCPU() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

package streamlab

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"streamproxy/internal/resp"
)

// What is recovered: so many entries over the streams but the first, which keeps a queue busy.
const (
	recoveryStreams = ManyStreams
	recoveryEntries = 320
	recoveryIdle    = 10 * time.Second
)

// Bound is how long a killed worker's entries may take to arrive at another, with a round every
// half of the min-idle: the min-idle, two rounds, one read, and a second.
const Bound = recoveryIdle + 2*recoveryIdle/2 + min(idleBlock, recoveryIdle/2) + time.Second

// holderKilled is an idle queue whose worker is killed together with its proxy, which holds the lease:
// the other worker's has to take it over first, for which there are two rounds more.
const holderKilled = "idle, lease holder killed"

// Recoveries kills a worker that has acked nothing, for each pair, on a busy and on an idle queue, and
// once with its proxy, all at the same time. Each two workers are behind one proxy, or, where one is
// killed, behind one each.
func (l *Lab) Recoveries(ctx context.Context) ([]Recovery, error) {
	var all []Recovery
	for _, pair := range l.pairs() {
		for _, queue := range []string{"busy", "idle", holderKilled} {
			r := Recovery{Pair: pair, Queue: queue, Entries: recoveryEntries, BoundSeconds: Bound.Seconds()}
			if queue == holderKilled {
				r.BoundSeconds += recoveryIdle.Seconds() // two rounds
			}
			all = append(all, r)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for i := range all {
		g.Go(func() error {
			if err := l.recovery(ctx, &all[i]); err != nil {
				return fmt.Errorf("recovery, %s, %s queue: %w", all[i].Pair, all[i].Queue, err)
			}
			return nil
		})
	}
	return all, g.Wait()
}

func (l *Lab) recovery(ctx context.Context, r *Recovery) error {
	proxies := 1
	if r.Queue == holderKilled {
		proxies = 2
	}
	s, err := openStand(l.Binary, Delay, proxies)
	defer s.close()
	if err != nil {
		return err
	}
	p, err := newPublisher(s.link.Addr())
	if err != nil {
		return err
	}
	defer p.close()
	killed, err := l.killOne(ctx, s, p, r)
	if err != nil {
		return fmt.Errorf("victim: %w", err)
	}
	heir, err := l.recoveryWorker(ctx, s, s.urls[proxies-1], r.Pair, "heir")
	if err != nil {
		return err
	}
	// A worker that never had a message may never have asked for abandoned entries.
	if err := p.publish("stream-0", "warm"); err != nil {
		return err
	}
	got := func() int { return len(recovered(heir.snapshot())) }
	deadline := killed + 2*Bound + recoveryIdle
	over := func() bool { return got() >= recoveryEntries || now() > deadline }
	if r.Queue == "busy" {
		err = s.busyFirst(ctx, p, heir, over)
	} else {
		for err == nil && !over() {
			err = pause(ctx, 100*time.Millisecond)
		}
	}
	if err != nil {
		return err
	}
	return r.settle(s, heir, killed)
}

// killOne lets a worker have all the entries and kills it. It returns when.
func (l *Lab) killOne(ctx context.Context, s *stand, p *publisher, r *Recovery) (time.Duration, error) {
	victim, err := l.recoveryWorker(ctx, s, s.urls[0], r.Pair, "victim")
	if err != nil {
		return 0, err
	}
	var all []byte
	for i := range recoveryEntries {
		all = resp.AppendCommand(all, "XADD", fmt.Sprint("stream-", 1+i%(recoveryStreams-1)), "*", "data", fmt.Sprint("lost-", i))
	}
	if err := p.send(all); err != nil {
		return 0, err
	}
	for range recoveryEntries {
		if _, err := p.reply(); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := victim.wait(ctx, func(t *told) bool { return len(t.arrivals) >= recoveryEntries }); err != nil {
		return 0, err
	}
	if r.Queue == holderKilled {
		if err := s.awaitLease(ctx); err != nil {
			return 0, err
		}
		s.proxies[0].Kill()
	}
	victim.kill()
	return now(), nil
}

// awaitLease waits until the only proxy that has a worker holds the lease.
func (s *stand) awaitLease(ctx context.Context) error {
	for {
		text, err := s.direct.do("EVAL", "return #redis.call('KEYS', 'streamproxy:lease:*')", "0")
		if err != nil || text != "0" {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// recoveryWorker starts a worker that acks nothing and waits until it listens.
func (l *Lab) recoveryWorker(ctx context.Context, s *stand, url, pair, consumer string) (*worker, error) {
	job := newJob(url, recoveryStreams)
	job.Consumer, job.Ack, job.Idle = consumer, false, recoveryIdle.Milliseconds()
	job.Block = idleBlock.Milliseconds()
	w, err := s.start(l.Pythons[pair], &job)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return w, w.wait(ctx, func(t *told) bool { return t.listening > 0 })
}

// busyFirst publishes to the first stream once a second.
func (s *stand) busyFirst(ctx context.Context, p *publisher, w *worker, done func() bool) error {
	for i := 0; !done(); i++ {
		select {
		case <-w.ended:
			return w.fault
		default:
		}
		if err := p.publish("stream-0", fmt.Sprint("busy-", i)); err != nil {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// recovered counts how often each lost entry has arrived.
func recovered(t told) map[string]int {
	counts := map[string]int{}
	for _, a := range t.arrivals {
		if strings.HasPrefix(a.payload, "lost-") {
			counts[a.payload]++
		}
	}
	return counts
}

// countScript tells how many pending entries of a group's streams have been delivered twice.
const countScript = `local n = 0
for _, key in ipairs(KEYS) do
  for _, entry in ipairs(redis.call('XPENDING', key, ARGV[1], '-', '+', 1000)) do
    if entry[4] == 2 then n = n + 1 end
  end
end
return n`

// settle counts what arrived how often and when, and what the server thinks of it.
func (r *Recovery) settle(s *stand, heir *worker, killed time.Duration) error {
	args := append([]string{"EVAL", countScript, strconv.Itoa(recoveryStreams - 1)}, streamNames(recoveryStreams)[1:]...)
	text, err := s.direct.do(append(args, group)...)
	if err != nil {
		return err
	}
	if r.CountedTwice, err = strconv.Atoi(text); err != nil {
		return err
	}
	t := heir.snapshot()
	for _, n := range recovered(t) {
		r.Arrived++
		if n > 1 {
			r.Repeated++
		}
	}
	for _, a := range t.arrivals {
		if strings.HasPrefix(a.payload, "lost-") {
			r.Seconds = max(r.Seconds, (a.at - killed).Seconds())
		}
	}
	return nil
}

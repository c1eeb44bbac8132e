package neighbourlab

import (
	"context"
	"fmt"
	"sync"
	"time"

	"streamproxy/bench/internal/lab"
	"streamproxy/bench/internal/proc"
	"streamproxy/bench/internal/result"
)

// What else a sample tells, besides the neighbours' waits.
const (
	ProxyCPU    = "proxy CPU %"
	ServerCPU   = "server CPU %"
	Memory      = "proxy peak MiB"
	Descriptors = "proxy peak descriptors"
	Attackers   = "attackers' connections"
)

// Quantity names what a sample tells of a neighbour: "p50", "p99" or "max" in milliseconds, or
// "errors"; with "after " before it, of the time after the attack.
func Quantity(neighbour, what string) string { return neighbour + " " + what }

// Stand measures.
type Stand struct {
	// Program is what a child process runs; called with Command it must call Child.
	Program string
	// Warmup is how long the neighbours are there before the attack; Span is how long that lasts,
	// After how long they are watched behind it.
	Warmup, Span, After time.Duration
	// Trip is a round trip to the server, if that is far.
	Trip time.Duration
}

// Measure has the neighbours of one side live through an attack; nil is a quiet time.
func (s *Stand) Measure(ctx context.Context, l *lab.Lab, side *lab.Side, attack *Attack) (result.Sample, error) {
	if err := prepare(l.RedisAddr, attack); err != nil {
		return result.Sample{}, err
	}
	neighbours, err := start(ctx, s.Program, false, "neighbours", side.Addr, s.Trip.String())
	if err != nil {
		return result.Sample{}, err
	}
	defer neighbours.stop()
	var foes *company
	if attack != nil {
		if foes, err = start(ctx, s.Program, true, "attackers", attack.Name, side.Addr); err != nil {
			return result.Sample{}, err
		}
		defer foes.stop()
	}
	rest(ctx, s.Warmup)
	more := map[string]float64{}
	if err := s.attack(ctx, l, side, neighbours, foes, more); err != nil {
		return result.Sample{}, err
	}
	var heard Heard
	if err := neighbours.report(&heard); err != nil {
		return result.Sample{}, err
	}
	heard.fill(more)
	return result.Sample{More: more}, heard.check()
}

// attack goes through the phases and fills in what the processes used.
func (s *Stand) attack(ctx context.Context, l *lab.Lab, side *lab.Side, neighbours, foes *company, more map[string]float64) error {
	watching, stop := context.WithCancel(ctx)
	var meters sync.WaitGroup
	var m meter
	defer func() {
		stop()
		meters.Wait()
	}()
	if side.Process != nil {
		m.pid = side.Process.Pid()
		meters.Go(func() { m.watch(watching) })
	}
	used, err := s.span(ctx, l, side, neighbours, foes)
	if err != nil {
		return err
	}
	more[ServerCPU] = used[0]
	if foes != nil {
		var force Force
		if err := foes.report(&force); err != nil {
			return err
		}
		if more[Attackers] = float64(force.Connections); force.Connections == 0 {
			return fmt.Errorf("no attacker came in: %+v", force)
		}
	}
	rest(ctx, s.After)
	neighbours.tell(tellEnd)
	stop()
	meters.Wait()
	if side.Process != nil {
		if ended := side.Process.Err(); ended != nil {
			return ended
		}
		more[ProxyCPU], more[Memory], more[Descriptors] = used[1], float64(m.rss)/(1<<20), float64(m.descriptors)
	}
	return m.err
}

// span is the attack itself. It returns how much of a core server and proxy used, in percent.
func (s *Stand) span(ctx context.Context, l *lab.Lab, side *lab.Side, neighbours, foes *company) (used [2]float64, err error) {
	processes := []*proc.Process{l.Redis, side.Process}
	cpu := func() (times [2]time.Duration, err error) {
		for i, p := range processes {
			if p != nil && err == nil {
				times[i], err = proc.CPU(p.Pid())
			}
		}
		return times, err
	}
	before, err := cpu()
	if err != nil {
		return used, err
	}
	began := time.Now()
	neighbours.tell(tellAttack)
	if foes != nil {
		foes.tell(tellAttack)
		if err := foes.await(saysCame); err != nil { // on a busy machine that takes a while
			return used, err
		}
	}
	rest(ctx, s.Span)
	neighbours.tell(tellRelieve)
	if foes != nil {
		foes.tell(tellRelieve)
	}
	took := time.Since(began)
	after, err := cpu()
	for i := range used {
		used[i] = 100 * (after[i] - before[i]).Seconds() / took.Seconds()
	}
	return used, err
}

// prepare empties the server and gives it what neighbours and attack expect there.
func prepare(addr string, attack *Attack) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.load(encode("FLUSHALL", "SCRIPT FLUSH", "SET "+valueKey+" "+value)); err != nil {
		return err
	}
	if err := c.ask("+OK", "ACL", "SETUSER", user, "on", ">"+userPassword, "~*", "&*", "+@all"); err != nil {
		return err
	}
	if attack == nil || attack.Prepare == nil {
		return nil
	}
	return c.load(attack.Prepare(0, 0))
}

// fill puts what was heard into a sample.
func (h *Heard) fill(more map[string]float64) {
	for name, w := range h.Under {
		w.fill(more, name, "")
	}
	for name, w := range h.After {
		w.fill(more, name, "after ")
	}
}

func (w *Waits) fill(more map[string]float64, name, when string) {
	more[Quantity(name, when+"p50")] = w.P50
	more[Quantity(name, when+"p99")] = w.P99
	more[Quantity(name, when+"max")] = w.Max
	more[Quantity(name, when+"errors")] = float64(w.Errors)
}

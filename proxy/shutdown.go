package proxy

import (
	"context"
	"time"

	"streamproxy/batcher"
)

// drainPoll is how often a draining proxy looks whether its clients are quiet.
const drainPoll = 20 * time.Millisecond

func (p *Proxy) stopping() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}

// Shutdown drains: clients, new ones too, are served until none has had a command
// in flight for DrainIdle (after DrainMin), or until DrainTimeout or the end of ctx.
// Then blocked commands are called back, clients get what they are owed, or are told
// that they will not get it, and all connections close. It reports whether every
// command was answered by whom it was meant for; it cannot know that of clients that
// had not stopped sending when the time was over.
func (p *Proxy) Shutdown(ctx context.Context) (clean bool) {
	p.draining.Store(true)
	p.conns.Range(func(k, _ any) bool {
		k.(*batcher.Conn).StopDelaying()
		return true
	})
	timed, cancel := context.WithTimeout(ctx, p.cfg.DrainTimeout)
	defer cancel()
	quiet := p.awaitQuiet(timed)
	giveBack := giveBackTime
	if !quiet {
		giveBack = lateGiveBackTime
	}
	p.closeListeners()
	p.drainStreams(ctx, giveBack)
	for _, s := range p.sessions.all() {
		s.dismiss(!quiet)
	}
	answered := p.awaitReaders(ctx, dismissal(timed)) || p.abortAnswered()
	p.drainStreams(ctx, giveBack) // what came back from clients that left
	if !answered {
		// What is in flight fails, and its clients hear of it.
		p.hangUp()
		p.awaitReaders(context.Background(), failTime)
	}
	p.Close()
	return quiet && answered
}

// giveBackTime bounds the giving back of what reclaim holds. When the drain's time is
// over, a server that does not answer must not cost so much of the supervisor's: all that
// follows DrainTimeout takes less than four seconds.
const (
	giveBackTime     = 2 * time.Second
	lateGiveBackTime = 500 * time.Millisecond
)

func (p *Proxy) drainStreams(ctx context.Context, limit time.Duration) {
	if p.streams == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p.streams.Drain(ctx)
}

// awaitQuiet waits until the clients are quiet. It reports false if they were not in
// time, unless they have said nothing at all since it began.
func (p *Proxy) awaitQuiet(ctx context.Context) bool {
	start := time.Now()
	lastBusy := start
	tick := time.NewTicker(drainPoll)
	defer tick.Stop()
	for {
		now := time.Now()
		if at := p.lastActivity(now); at.After(lastBusy) {
			lastBusy = at
		}
		if now.Sub(start) >= p.cfg.DrainMin && now.Sub(lastBusy) >= p.cfg.DrainIdle {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return lastBusy.Equal(start) && !p.lastActivity(time.Now()).After(start)
		}
	}
}

// lastActivity is when a client last had a command in flight. A blocked command, a
// subscription and an idle connection are not in flight.
func (p *Proxy) lastActivity(now time.Time) (last time.Time) {
	for _, s := range p.sessions.all() {
		if s.owed() {
			return now
		}
		if at := s.lastWork.Load(); at != 0 && time.Unix(0, at).After(last) {
			last = time.Unix(0, at)
		}
	}
	return last
}

// owed reports whether the client waits for a reply other than that of a blocked
// command.
func (s *session) owed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unheard || !s.answeredAll() && !s.blocks()
}

// answeredAll reports whether nothing that was read of the client waits, upstream or
// here, for its reply. The lock is held.
func (s *session) answeredAll() bool {
	return s.outstanding == 0 && (s.closed || !s.working.Load() && !s.unheard)
}

// dismissTime bounds the time in which dismissed clients take what they are owed, and
// leastDismissTime is granted even when the drain has used up its time.
const (
	dismissTime      = 5 * time.Second
	leastDismissTime = time.Second
)

// dismissal is how long dismissed clients are waited for.
func dismissal(drain context.Context) time.Duration {
	end, _ := drain.Deadline()
	return max(leastDismissTime, min(dismissTime, time.Until(end)))
}

// failTime is how long clients have to take the errors of what was never answered.
const failTime = 500 * time.Millisecond

// awaitReaders waits so long for the sessions to end, and reports whether they have; no
// longer if ctx ends.
func (p *Proxy) awaitReaders(ctx context.Context, patience time.Duration) bool {
	done := make(chan struct{})
	go func() { p.readers.Wait(); close(done) }() // Close waits for the same
	select {
	case <-done:
		return true
	case <-time.After(patience):
	case <-ctx.Done():
	}
	return false
}

// abortAnswered cuts the sessions that only wait for their clients to take replies, and
// reports whether there were no others.
func (p *Proxy) abortAnswered() bool {
	all := true
	for _, s := range p.sessions.all() {
		s.mu.Lock()
		answered := s.answeredAll()
		s.mu.Unlock()
		if answered {
			s.abort()
		}
		all = all && answered
	}
	return all
}

func (p *Proxy) closeListeners() {
	p.mu.Lock()
	list := p.listeners
	p.listeners, p.deaf = nil, true
	p.mu.Unlock()
	for _, l := range list {
		_ = l.Close() // it only has to stop
	}
}

// Close ends everything now.
func (p *Proxy) Close() {
	p.closed.Do(func() {
		p.cancel()
		p.closeListeners() // with its lock: who accepts from now on knows that it is late
		for _, s := range p.sessions.all() {
			s.abort()
		}
		p.hangUp()
		p.control.Close()
		p.partings.close()
	})
	p.readers.Wait()
	if p.streams != nil {
		p.streams.Close()
	}
	p.wg.Wait()
	p.conns.Range(func(k, _ any) bool { // those too that a dial has brought meanwhile
		c := k.(*batcher.Conn)
		c.Close()
		<-c.Done()
		return true
	})
}

// hangUp ends every upstream connection and all waiting for one. Whatever was in flight
// there fails.
func (p *Proxy) hangUp() {
	p.cancel()
	for _, s := range p.sessions.all() {
		s.wake() // see pace
	}
	p.mu.Lock()
	var lanes []*batcher.Lane
	for _, l := range p.controls {
		lanes = append(lanes, l)
	}
	p.mu.Unlock()
	for _, h := range p.allHubs() {
		h.close()
	}
	for _, l := range lanes {
		l.Close()
	}
	p.conns.Range(func(k, _ any) bool {
		k.(*batcher.Conn).Close()
		return true
	})
}

// wake has whoever waits for the session's client look again.
func (s *session) wake() {
	s.mu.Lock()
	s.cond.Broadcast()
	s.mu.Unlock()
}

// within returns a context that ends after d, and with the proxy.
func (p *Proxy) within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.ctx, d)
}

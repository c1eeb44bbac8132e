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
// Then blocked commands are called back, clients get what they are owed, and all
// connections close. It reports whether every command was answered.
func (p *Proxy) Shutdown(ctx context.Context) (clean bool) {
	p.draining.Store(true)
	p.conns.Range(func(k, _ any) bool {
		k.(*batcher.Conn).StopDelaying()
		return true
	})
	timed, cancel := context.WithTimeout(ctx, p.cfg.DrainTimeout)
	defer cancel()
	clean = p.awaitQuiet(timed)
	p.closeListeners()
	p.drainStreams(ctx)
	for _, s := range p.sessions.all() {
		s.dismiss()
	}
	clean = p.awaitReaders(ctx, dismissal(timed)) && clean
	p.drainStreams(ctx) // what came back from clients that left
	p.Close()
	return clean
}

// drainStreamsTime bounds the giving back of what reclaim holds.
const drainStreamsTime = 2 * time.Second

func (p *Proxy) drainStreams(ctx context.Context) {
	if p.streams == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, drainStreamsTime)
	defer cancel()
	p.streams.Drain(ctx)
}

// awaitQuiet waits until the clients are quiet. It reports false if they were not in
// time.
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
			return p.lastActivity(time.Now()).Before(time.Now().Add(-drainPoll))
		}
	}
}

// lastActivity is when a client last had a command in flight. A blocked command, a
// subscription and an idle connection are not in flight.
func (p *Proxy) lastActivity(now time.Time) (last time.Time) {
	for _, s := range p.sessions.all() {
		s.mu.Lock()
		waiting := s.outstanding > 0 && (s.active == nil || !s.active.patient)
		s.mu.Unlock()
		if waiting {
			return now
		}
		if at := time.Unix(0, s.lastCmd.Load()); s.lastCmd.Load() > s.created.UnixNano() && at.After(last) {
			last = at
		}
	}
	return last
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

// awaitReaders waits so long for the sessions to end, and cuts those that do not; at
// once if ctx ends.
func (p *Proxy) awaitReaders(ctx context.Context, patience time.Duration) bool {
	done := make(chan struct{})
	go func() { p.readers.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(patience):
	case <-ctx.Done():
	}
	answered := true
	for _, s := range p.sessions.all() {
		s.mu.Lock()
		answered = answered && s.outstanding == 0
		s.mu.Unlock()
		s.abort()
	}
	return answered
}

// dismiss ends a session in an orderly way: its blocked command, if it has one, is
// called back, so that its client gets the nil it would get at its timeout.
func (s *session) dismiss() {
	s.mu.Lock()
	e := s.active
	parked := e != nil && e.patient && !e.settled
	s.gone = true
	s.mu.Unlock()
	if parked {
		s.p.wg.Go(func() { s.unblock(e) })
	}
	_ = s.nc.SetReadDeadline(past) // a closed connection is on its way out already
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
		p.control.Close()
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

// within returns a context that ends after d, and with the proxy.
func (p *Proxy) within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.ctx, d)
}

package proxy

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"streamproxy/internal/upstream"
)

const (
	// healthEvery is the pause between checks of an upstream that is well. Traffic
	// tells sooner: a lane that is lost asks for a check at once.
	healthEvery = 15 * time.Second
	// healthTimeout bounds one check.
	healthTimeout = 5 * time.Second
)

// health is what is known of the upstream.
type health struct {
	up       atomic.Bool
	notReady atomic.Pointer[string] // the server's words when it asks for patience
	// What the server is like has been asked over the connection of this number of the
	// control plane's, 0 not yet. A later one may lead to another run of it.
	learned      int64
	runID        string // empty: it is not known
	firstFailure atomic.Bool
	doubted      atomic.Bool  // a lane was lost: the address may lead elsewhere by now
	silentSince  atomic.Int64 // unix nanoseconds: no check has been answered since; 0: the last was
	check        chan struct{}
}

// checkNow asks for a check without waiting for it.
func (p *Proxy) checkNow() {
	select {
	case p.health.check <- struct{}{}:
	default:
	}
}

// noteDown is called when a command could not be served for want of an upstream.
func (p *Proxy) noteDown(err error) {
	p.log.Debug("no upstream for a command", "error", err)
	p.checkNow()
}

// watchUpstream is the health check. It learns what the server is like whenever it
// has not been seen well before.
func (p *Proxy) watchUpstream() {
	backoff := upstream.Backoff{Min: 50 * time.Millisecond, Max: time.Second}
	for failures := 0; ; {
		if err := p.checkUpstream(); err != nil {
			failures++
			if !p.pause(backoff.Delay(failures)) {
				return
			}
			continue
		}
		failures = 0
		select {
		case <-p.health.check:
		case <-time.After(healthEvery):
		case <-p.closing:
			return
		}
	}
}

// pause waits, and reports false if the proxy is closing.
func (p *Proxy) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-p.closing:
		return false
	}
}

func (p *Proxy) checkUpstream() error {
	began := time.Now()
	ctx, cancel := p.within(healthTimeout)
	defer cancel()
	err := p.look(ctx)
	locked := p.lockedOut(err)
	if locked {
		err = nil // it is there for clients who have what it wants
	}
	p.noteSilence(began, err)
	p.noteHealth(err)
	if err == nil && !locked {
		p.knock(ctx)
	}
	return err
}

// look asks the server whether it serves, and what it is like if that may have changed.
func (p *Proxy) look(ctx context.Context) error {
	var err error
	if p.health.doubted.Swap(false) {
		err = p.control.Renew() // the present connection may hang at the server before
	}
	if err == nil && p.health.up.Load() {
		err = p.control.Ping(ctx)
	}
	if p.lockedOut(err) {
		return err
	}
	if err != nil || !p.health.up.Load() || p.control.Connections() != p.health.learned {
		err = p.learn(ctx)
	}
	return err
}

// noteSilence records since when checks get no answer at all. A refusal is one.
func (p *Proxy) noteSilence(began time.Time, err error) {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		p.health.silentSince.CompareAndSwap(0, began.UnixNano())
		return
	}
	p.health.silentSince.Store(0)
}

// silent reports whether the server has been silent for so long that nothing is to be
// expected of it any more. One check that a busy machine was late with does not count.
func (p *Proxy) silent(now time.Time) bool {
	since := p.health.silentSince.Load()
	return since != 0 && now.Sub(time.Unix(0, since)) >= max(p.cfg.UpstreamTimeout, 2*healthTimeout)
}

// noteHealth records a check and logs a change of state.
func (p *Proxy) noteHealth(err error) {
	if err == nil {
		p.health.notReady.Store(nil)
		if !p.health.up.Swap(true) {
			p.log.Info("upstream is up", "upstream", p.cfg.Upstream.String())
			for _, h := range p.allHubs() {
				h.staff()
			}
			p.controlLane(p.defaultKey()).Want() // before it is urgent
		}
		return
	}
	text := ""
	if upstream.NotReady(err) {
		text = err.Error()
	}
	p.health.notReady.Store(&text)
	if p.health.up.Swap(false) || p.health.learned == 0 && p.health.firstFailure.CompareAndSwap(false, true) {
		p.log.Warn("upstream is down", "upstream", p.cfg.Upstream.String(), "error", err)
	}
}

// learn asks the server what it is like, and rebuilds the command table.
func (p *Proxy) learn(ctx context.Context) error {
	if err := p.control.Ping(ctx); err != nil {
		return err
	}
	asked := p.control.Connections() // before, so that one more meanwhile is noticed
	run, err := p.control.RunID(ctx)
	if err != nil {
		return err
	}
	if run != "" && run == p.health.runID {
		p.health.learned = asked
		return nil
	}
	facts, err := p.control.Facts(ctx)
	if err != nil {
		return err
	}
	before := p.health.learned
	p.health.learned = asked
	if facts.RunID == p.health.runID && (facts.RunID != "" || asked == before) {
		return nil
	}
	if p.streams != nil && before != 0 {
		p.streams.ServerChanged()
	}
	p.health.runID = facts.RunID
	p.maxBulk.Store(facts.MaxBulk)
	p.fragile.Store(fragile(facts.Server, facts.Version))
	table, err := p.cfg.table(facts)
	if err != nil {
		return err
	}
	p.table.Store(table)
	p.knowsSetInfo.Store(hasSubcommand(facts.Commands, "client", "setinfo"))
	p.log.Info("learned the upstream server", "server", facts.Server, "version", facts.Version, "run_id", facts.RunID)
	return nil
}

// hasSubcommand looks for a subcommand in the server's own list.
func hasSubcommand(commands []upstream.CommandInfo, name, sub string) bool {
	for _, c := range commands {
		if !strings.EqualFold(c.Name, name) {
			continue
		}
		for _, s := range c.Subcommands {
			if strings.EqualFold(s.Name, name+"|"+sub) || strings.EqualFold(s.Name, sub) {
				return true
			}
		}
	}
	return false
}

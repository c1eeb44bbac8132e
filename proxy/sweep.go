package proxy

import (
	"time"

	"streamproxy/batcher"
)

// sweepEvery bounds the pause of the sweeper; a short upstream timeout shortens it,
// so that a timeout is kept within a sixteenth.
const sweepEvery = 250 * time.Millisecond

// sweep is the watchdog of all upstream connections, and the broom.
func (p *Proxy) sweep() {
	tick := time.NewTicker(max(min(p.cfg.UpstreamTimeout/16, sweepEvery), 5*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			p.sweepOnce(now)
		case <-p.closing:
			return
		}
	}
}

func (p *Proxy) sweepOnce(now time.Time) {
	silent, gone := false, p.silent(now)
	p.conns.Range(func(k, _ any) bool {
		c := k.(*batcher.Conn)
		if gone {
			p.giveUp(c)
		}
		if c.Overdue() {
			silent = true
			p.log.Warn("upstream connection owes a reply and is silent; closing it", "kind", c.Kind(), "timeout", p.cfg.UpstreamTimeout)
		}
		return true
	})
	if silent {
		p.checkNow()
		p.dropSpares()
	}
	p.txPeak.turn(now)
	for _, h := range p.allHubs() {
		h.trim(now)
		h.closeIdle()
	}
	p.leftHub() // a dial may have ended in one since
	p.dropControls()
	p.trimProvers(now)
	p.partings.lookAround(&p.sessions)
	p.ceiling.call()
	p.shed()
	p.makeRoom()
}

// giveUp closes a connection on which something is waited for that may take for ever, when
// the server has been silent for long. Under a server that answers it would not: what is
// blocked there may be given an entry. But who waits for one that is gone would never
// learn of it, and who has left would keep its place among the clients.
func (p *Proxy) giveUp(c *batcher.Conn) {
	if c.GiveUp(p.cfg.UpstreamTimeout) {
		p.log.Warn("the server is silent; closing a connection that waits for it", "kind", c.Kind(), "timeout", p.cfg.UpstreamTimeout)
	}
}

// dropSpares closes the idle connections when one beside them has proved silent: they
// lead to the same server, and whoever got one would wait as long again.
func (p *Proxy) dropSpares() {
	for _, h := range p.allHubs() {
		h.closeSpares()
	}
}

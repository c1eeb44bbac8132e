package proxy

import (
	"sync"

	"golang.org/x/time/rate"

	"streamproxy/internal/resp"
)

// page is a text that a PROXY command returns. Many may ask for it, as often as they like, and
// some take milliseconds to write: it is written anew pagesPerSecond times at most, pageBurst
// at once, and else returned as it was written last.
type page struct {
	mu    sync.Mutex
	pace  *rate.Limiter
	write func() string
	text  string
}

const (
	pagesPerSecond = 20
	pageBurst      = 20
)

func newPage(write func() string) *page {
	return &page{pace: rate.NewLimiter(pagesPerSecond, pageBurst), write: write}
}

func (g *page) read() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pace.Allow() {
		g.text = g.write()
	}
	return g.text
}

// pages are what there is to look at. The configuration is nil where nobody has said how to
// write it.
type pages struct{ stats, clients, streams, config *page }

func (p *Proxy) newPages() pages {
	g := pages{stats: newPage(p.statsText), clients: newPage(p.clientsText), streams: newPage(p.streamsText)}
	if p.cfg.Effective != nil {
		g.config = newPage(p.cfg.Effective)
	}
	return g
}

// of finds the page for which a PROXY command asks, nil if there is no such one.
func (g *pages) of(cmd resp.Command, route Route) *page {
	switch {
	case route.Verb == VerbProxyInfo:
		return g.stats
	case cmd.Len() != 2:
		return nil
	case fold(cmd.Arg(1), "stats"):
		return g.stats
	case fold(cmd.Arg(1), "clients"):
		return g.clients
	case fold(cmd.Arg(1), "streams"):
		return g.streams
	case fold(cmd.Arg(1), "config"):
		return g.config
	}
	return nil
}

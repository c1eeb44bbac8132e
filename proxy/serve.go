package proxy

import (
	"errors"
	"net"
	"time"

	"github.com/tidwall/redcon"

	"streamproxy/internal/upstream"
)

// Serve accepts clients from l until the proxy is shut down, and then returns nil.
func (p *Proxy) Serve(l net.Listener) error {
	if !p.listenTo(l) {
		return l.Close()
	}
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			p.accept(nc)
		case p.stopping() || errors.Is(err, net.ErrClosed):
			return nil
		default: // out of descriptors, mostly: a loop at full speed would not help
			if upstream.NoRoom(err) {
				p.discardAll()
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			if n := p.unaccepted.take(time.Now()); n > 0 {
				p.log.Warn("accept failed", "error", err, "such_errors", n)
			}
			p.accepted("error")
			if !p.pause(pause) {
				return nil
			}
		}
	}
}

// listenTo notes a listener to be closed by Shutdown or Close; it returns false if
// they have begun to close listeners.
func (p *Proxy) listenTo(l net.Listener) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.deaf {
		p.listeners = append(p.listeners, l)
	}
	return !p.deaf
}

func (p *Proxy) accepted(result string) {
	if f := p.cfg.Events.Accepted; f != nil {
		f(result)
	}
}

// accept starts a session, or refuses it as Redis does.
func (p *Proxy) accept(nc net.Conn) {
	s := newSession(p, nc)
	p.mu.Lock() // with which closeListeners separates those that are dismissed from those too late
	late := p.deaf || p.stopping()
	full := p.ceiling.full.Load()
	added := !late && !full && p.sessions.add(s, p.cfg.MaxClients)
	if added {
		p.accepted("ok")
		p.readers.Go(s.serve)
	}
	p.mu.Unlock()
	switch {
	case added:
		p.tookOn(idleClient)
		return
	case late:
	case full:
		p.accepted("memory")
		p.met(LimitMemory, "refused: no room for more clients", "client", s.remote())
		refuse(nc, textMemory)
	default:
		p.accepted("maxclients")
		refuse(nc, textMaxClients)
	}
	_ = nc.Close() // nobody is left to be told
	p.leaveHub(s.hub)
}

// refuse says why a client is not taken on.
func refuse(nc net.Conn, text string) {
	if !secure(nc) { // it would take a handshake to say it, and Redis does not either
		_, _ = nc.Write(redcon.AppendError(nil, text)) // the client may be gone
	}
}

// forget ends the bookkeeping of a session.
func (p *Proxy) forget(s *session) {
	p.sessions.remove(s)
	if f := p.cfg.Events.Closed; f != nil {
		f()
	}
}

package proxy

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"streamproxy/internal/resp"
)

// localCommand answers what is the proxy's own.
func (s *session) localCommand(cmd resp.Command, route Route) {
	if route.Verb == VerbMaintNotifications {
		// Forwarded, managed servers would tell the client to reconnect past the proxy.
		s.answer(redcon.AppendError(nil, "ERR streamproxy: maintenance notifications are handled by the proxy"))
		return
	}
	page := s.p.pages.of(cmd, route)
	if page == nil {
		s.answer(redcon.AppendError(nil, "ERR streamproxy: unknown PROXY subcommand; try PROXY STATS, STREAMS, CLIENTS or CONFIG"))
		return
	}
	if refusal := s.mayLook(); refusal != nil {
		s.answer(refusal)
		return
	}
	s.answer(redcon.AppendBulkString(nil, page.read()))
	s.flushLocal() // many fit in what has been read, and a client that is gone is found so
}

// infoQuestion is an INFO that costs the server nothing: it knows no such section.
var infoQuestion = resp.AppendCommand(nil, "INFO", "streamproxy")

// mayLook asks the server whether the client's user may run INFO: who may not look
// into the server may not look into the proxy. It returns nil for yes, else what the
// client is told. A server that has no INFO has no opinion. The upstream URL's user is believed while the server is away, when
// the proxy's state is wanted most.
func (s *session) mayLook() (refusal []byte) {
	if !s.key.User.Proven() && !s.p.health.up.Load() {
		return nil
	}
	ctx, cancel := s.p.within(s.p.cfg.UpstreamWait)
	defer cancel()
	replies, err := calls{s.p}.run(ctx, s.key, infoQuestion, 1)
	switch {
	case err == nil && (bytes.HasPrefix(replies[0], []byte("-NOPERM")) || bytes.HasPrefix(replies[0], []byte("-NOAUTH"))):
		return replies[0]
	case s.refusalOf(err) != nil:
		s.ending = true
		return s.refusalOf(err)
	case err != nil && s.key.User.Proven():
		return s.notSent()
	}
	return nil
}

// statsText is PROXY STATS: fields as in INFO.
func (p *Proxy) statsText() string {
	st := p.Stats()
	var b strings.Builder
	line := func(name string, v any) { fmt.Fprintf(&b, "%s:%v\r\n", name, v) }
	b.WriteString("# streamproxy\r\n")
	line("version", p.cfg.Version)
	line("uptime_seconds", int64(time.Since(p.started).Seconds()))
	line("upstream", p.cfg.Upstream)
	line("upstream_up", flag(st.UpstreamUp))
	line("upstream_not_ready", st.UpstreamNotReady)
	line("draining", flag(st.Draining))
	line("clients", st.Clients)
	line("commands", p.commands.Load())
	line("in_flight", st.InFlight)
	line("lanes", st.Lanes)
	line("private_idle", st.PrivateIdle)
	line("private_busy", st.PrivateBusy)
	line("control", st.Control)
	line("buffered_bytes", st.BufferedBytes)
	return b.String()
}

func flag(v bool) int {
	if v {
		return 1
	}
	return 0
}

// maxClientLines bounds PROXY CLIENTS: more is read by nobody.
const maxClientLines = 1000

// clientsText is PROXY CLIENTS: one line for each session, in the manner of CLIENT
// LIST, up to maxClientLines, those that came first.
func (p *Proxy) clientsText() string {
	list := p.sessions.all()
	sort.Slice(list, func(i, j int) bool { return list[i].id < list[j].id })
	more := max(len(list)-maxClientLines, 0)
	var b strings.Builder
	now := time.Now()
	for _, s := range list[:len(list)-more] {
		name := ""
		if n := s.name.Load(); n != nil {
			name = (*n)[:min(len(*n), maxShownName)]
		}
		s.mu.Lock()
		in, out, busy := s.outstanding, s.unsent(), s.busy
		s.mu.Unlock()
		fmt.Fprintf(&b, "id=%d addr=%s name=%s age=%d idle=%d db=%d in-flight=%d out=%d private=%d\r\n",
			s.id, s.remote(), name, int64(now.Sub(s.created).Seconds()),
			int64(now.Sub(time.Unix(0, s.lastCmd.Load())).Seconds()), s.db.Load(), in, out, flag(busy))
	}
	if more > 0 {
		fmt.Fprintf(&b, "# and %d more\r\n", more)
	}
	return b.String()
}

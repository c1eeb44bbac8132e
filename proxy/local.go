package proxy

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"streamproxy/internal/resp"
)

// localCommand answers what is the proxy's own.
func (s *session) localCommand(cmd resp.Command, route Route) {
	switch {
	case route.Verb == VerbMaintNotifications:
		// Forwarded, managed servers would tell the client to reconnect past the proxy.
		s.answer(redcon.AppendError(nil, "ERR streamproxy: maintenance notifications are handled by the proxy"))
	case route.Verb == VerbProxyInfo, fold(cmd.Arg(1), "stats") && cmd.Len() == 2:
		s.answer(redcon.AppendBulkString(nil, s.p.statsText()))
	case fold(cmd.Arg(1), "clients") && cmd.Len() == 2:
		s.answer(redcon.AppendBulkString(nil, s.p.clientsText()))
	case fold(cmd.Arg(1), "streams") && cmd.Len() == 2:
		s.answer(redcon.AppendBulkString(nil, s.p.streamsText()))
	default:
		s.answer(redcon.AppendError(nil, "ERR streamproxy: unknown PROXY subcommand; try PROXY STATS, PROXY CLIENTS or PROXY STREAMS"))
	}
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

// clientsText is PROXY CLIENTS: one line for each session, in the manner of CLIENT
// LIST.
func (p *Proxy) clientsText() string {
	list := p.sessions.all()
	sort.Slice(list, func(i, j int) bool { return list[i].id < list[j].id })
	var b strings.Builder
	now := time.Now()
	for _, s := range list {
		name := ""
		if n := s.name.Load(); n != nil {
			name = *n
		}
		s.mu.Lock()
		in, out, busy := s.outstanding, s.unsent(), s.busy
		s.mu.Unlock()
		fmt.Fprintf(&b, "id=%d addr=%s name=%s age=%d idle=%d db=%d in-flight=%d out=%d private=%d\r\n",
			s.id, s.remote(), name, int64(now.Sub(s.created).Seconds()),
			int64(now.Sub(time.Unix(0, s.lastCmd.Load())).Seconds()), s.db.Load(), in, out, flag(busy))
	}
	return b.String()
}

// streamsText is PROXY STREAMS: one line for each stream, group and min-idle that
// reclaim knows.
func (p *Proxy) streamsText() string {
	if p.streams == nil {
		return "reclaim is off\r\n"
	}
	var b strings.Builder
	for _, i := range p.streams.Streams() {
		fmt.Fprintf(&b, "db=%d user=%s stream=%q group=%q min-idle=%s state=%s age=%s consumers=%d held=%d leader=%d first=%s owner=%q forwarded-because=%q\r\n",
			i.DB, i.User, i.Stream, i.Group, i.MinIdle, i.State, i.Age.Round(time.Millisecond), i.Consumers, i.Held, flag(i.Leading), i.FirstID, i.FirstOwner, i.Why)
	}
	return b.String()
}

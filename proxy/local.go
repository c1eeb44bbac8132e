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
	default:
		s.answer(redcon.AppendError(nil, "ERR streamproxy: unknown PROXY subcommand; try PROXY STATS or PROXY CLIENTS"))
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

package proxy

import (
	"bytes"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/reclaim"
)

// A reply is one frame, except where a server puts bytes of a client's into an error
// without taking the line ends out: Redis 8.2 does so with what a script raises, it and
// Valkey 9.1 with the argument of FUNCTION LIST. What stands behind the line end is then
// taken for replies to the commands that follow. On a lane those are others' commands: so
// what can bring such an error has a private connection, and that is shown to be at its
// end before anybody else gets it.

// looseScripts are the commands whose errors hold what a script has raised.
var looseScripts = []string{"eval", "evalsha", "fcall", "eval_ro", "evalsha_ro", "fcall_ro"}

// loose reports whether a server of this name and version lets line ends pass in what a
// script raises. Seen not to: Redis 6.2.14 and 7.0.15, Valkey 9.1.2; seen to: Redis 8.2.3.
// What is not known does.
func loose(server, version string) bool {
	v, known := versionOf(version)
	switch {
	case !known:
		return true
	case server == "redis":
		return !v.before(7, 1)
	case server == "valkey":
		return v.before(9, 0)
	}
	return true
}

// WithLooseScripts returns the table with scripts that do not share a lane, but for those
// that the operator vouches for.
func (t *Table) WithLooseScripts(vouched []string) *Table {
	apart := &Table{commands: make(map[string]*entry, len(t.commands))}
	for name, e := range t.commands {
		if slices.Contains(looseScripts, name) && !slices.ContainsFunc(vouched, func(v string) bool { return strings.EqualFold(v, name) }) {
			e = &entry{Route: Route{Class: ClassUnknown, Write: e.Write, Loose: true}}
			if name == "evalsha" {
				e.refine = (*entry).runsLoose
			}
		}
		apart.commands[name] = e
	}
	apart.index = newIndex(apart.commands)
	return apart
}

// runsLoose lets EVALSHA of a script that guards a lock pass for what it is: it raises
// nothing that a client could have written, and stream consumers send it in transactions
// that have to stay whole.
func (e *entry) runsLoose(cmd resp.Command) Route {
	if reclaim.GuardsLock(cmd) {
		return sharedWrite
	}
	return e.Route
}

// provenTime bounds how long a connection has to be shown to be at its end.
const provenTime = 5 * time.Second

// giveBackProven returns a connection to the spares of a hub, if nothing is left over of
// the replies before: what it says next has to be the word it is asked for.
func (p *Proxy) giveBackProven(h *hub, c *batcher.Conn) {
	ctx, cancel := p.within(provenTime)
	defer cancel()
	word := rand.Text()
	reply, err := p.ask(ctx, c, "PING", word)
	if err != nil || !bytes.Equal(reply, redcon.AppendBulkString(nil, word)) {
		c.Close()
		return
	}
	h.giveBack(c)
}

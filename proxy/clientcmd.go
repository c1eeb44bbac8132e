package proxy

import (
	"errors"
	"slices"
	"strconv"

	"github.com/tidwall/redcon"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
)

// clientCommand runs those CLIENT subcommands that concern what the session keeps.
func (s *session) clientCommand(cmd resp.Command, route Route) {
	switch {
	case route.Verb == VerbClientID && cmd.Len() == 2:
		s.answer(redcon.AppendInt(nil, s.id))
	case route.Verb == VerbClientGetName && cmd.Len() == 2:
		s.answer(s.nameReply())
	case route.Verb == VerbClientSetName && cmd.Len() == 3 && validName(string(cmd.Arg(2))):
		if !s.setName(string(cmd.Arg(2))) {
			s.answer(redcon.AppendError(nil, textNoRoom))
			return
		}
		s.answer(replyOK)
	case route.Verb == VerbClientSetInfo && cmd.Len() == 4 && s.p.knowsSetInfo.Load() &&
		(fold(cmd.Arg(2), "lib-name") || fold(cmd.Arg(2), "lib-ver")) && validName(string(cmd.Arg(3))):
		s.answer(replyOK)
	default: // something the server will refuse, in its own words
		s.runOnce(cmd)
	}
}

// validName is Redis's rule for the names of clients: printable, no spaces.
func validName(name string) bool {
	for i := range len(name) {
		if name[i] < '!' || name[i] > '~' {
			return false
		}
	}
	return true
}

// nameReply is the session's name as CLIENT GETNAME returns it.
func (s *session) nameReply() []byte {
	switch name := s.name.Load(); {
	case name != nil:
		return redcon.AppendBulkString(nil, *name)
	case s.key.Proto == 3:
		return []byte("_\r\n")
	default:
		return redcon.AppendNull(nil)
	}
}

// urgentCommand runs a command that the server must read although it is busy: over
// a control connection, on which nothing slow is ever in flight.
func (s *session) urgentCommand(cmd resp.Command, route Route) {
	s.waitIdle()
	if s.refuse() {
		return
	}
	if route.Verb == VerbShutdown && (cmd.Len() != 2 || !fold(cmd.Arg(1), "abort")) {
		// It may wait for replicas, and what could abort it must not wait behind it.
		s.runExclusive(cmd.Raw, exclusive{closeOnLoss: true})
		return
	}
	ctx, cancel := s.patience()
	c, err := s.p.controlLane(s.key).Await(ctx)
	cancel()
	if err != nil {
		s.unserved(err)
		s.failHere(1)
		return
	}
	if route.Verb == VerbClientKill && s.killHere(cmd, c) {
		return
	}
	raw := cmd.Raw
	if id, here := virtualID(cmd.Arg(2)); here && route.Verb == VerbClientUnblock {
		reply, ok := s.allowed(cmd, c)
		if !ok {
			return
		}
		if raw, c = s.unblockHere(cmd, id, c); raw == nil {
			s.answer(reply) // it has been carried out, for nobody
			return
		}
	}
	s.runExclusive(raw, exclusive{conn: c, control: true})
}

// unblockHere puts the server's id in the place of this proxy's in CLIENT UNBLOCK, which
// is to be sent over c, or the newer connection that it returns. It returns nil if that id blocks
// nowhere, or not at the server that can be asked.
func (s *session) unblockHere(cmd resp.Command, id int64, c *batcher.Conn) ([]byte, *batcher.Conn) {
	blocked := s.p.blockedOn(id)
	if blocked == nil {
		return nil, c
	}
	for !s.p.sameRun(s.key, blocked, c) {
		newer, err := c, error(nil)
		if c.OlderThan(blocked) {
			c.Retire() // to where the other leads a newer one will lead too
			newer, err = s.p.controlConn(s.key)
		}
		if err != nil || newer == c {
			blocked.Landed() // nothing will be sent
			return nil, c
		}
		c = newer
	}
	return replaceArg(cmd, 2, strconv.FormatInt(blocked.ID(), 10)), c
}

// allowed asks the server over c whether the client's user may run a command that names an id
// of this proxy, by that very command: it finds nobody there, and reply says so. If the user
// may not, allowed answers the client.
func (s *session) allowed(cmd resp.Command, c *batcher.Conn) (reply []byte, ok bool) {
	ctx, cancel := s.p.within(s.p.cfg.UpstreamTimeout)
	defer cancel()
	reply, err := askRaw(ctx, c, cmd.Raw)
	var refusal *upstream.ReplyError
	switch {
	case err == nil:
		return reply, true
	case errors.As(err, &refusal):
		s.answer(refusal.Reply)
	default:
		s.failHere(1) // nothing has been done
	}
	return nil, false
}

// killHere runs CLIENT KILL ID <id> [<id> ...] [SKIPME yes|no], in any order, for ids of this
// proxy. c leads to the server, as the client's user.
func (s *session) killHere(cmd resp.Command, c *batcher.Conn) bool {
	ids, skipMe := killFilter(cmd)
	if len(ids) == 0 {
		return false
	}
	if _, ok := s.allowed(cmd, c); !ok {
		return true
	}
	slices.Sort(ids)
	killed := int64(0)
	for _, id := range slices.Compact(ids) {
		switch victim := s.p.sessions.find(id); {
		case victim == nil, victim == s && skipMe:
			continue
		case victim == s:
			s.ending = true // behind the reply
		case !victim.abort():
			continue // it was ending
		}
		killed++
	}
	s.answer(redcon.AppendInt(nil, killed))
	return true
}

// killFilter reads the filters of a CLIENT KILL that names sessions of this proxy by their
// ids, and by nothing else; there are none if it is another. Of a filter given twice the last
// counts, as at the server. Several ids are Valkey's: a server that does not know them says so
// when it is asked for the right.
func killFilter(cmd resp.Command) (ids []int64, skipMe bool) {
	skipMe = true
	for i := 2; i < cmd.Len(); i += 2 {
		switch value := cmd.Arg(i + 1); {
		case i+1 == cmd.Len():
			return nil, false
		case fold(cmd.Arg(i), "id"):
			if ids = virtualIDs(cmd, i+1); len(ids) == 0 {
				return nil, false
			}
			i += len(ids) - 1
		case fold(cmd.Arg(i), "skipme") && fold(value, "yes"):
			skipMe = true
		case fold(cmd.Arg(i), "skipme") && fold(value, "no"):
			skipMe = false
		default:
			return nil, false
		}
	}
	return ids, skipMe
}

// virtualIDs reads the ids of this proxy that stand from argument i on.
func virtualIDs(cmd resp.Command, i int) (ids []int64) {
	for ; i < cmd.Len(); i++ {
		id, here := virtualID(cmd.Arg(i))
		if !here {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// clientList asks for the server's list of connections. A filter by ids of this
// proxy means the connections on which those sessions have the server's attention.
func (s *session) clientList(cmd resp.Command) {
	if cmd.Len() < 4 || !fold(cmd.Arg(2), "id") {
		s.submit(cmd.Raw, 1)
		return
	}
	args := []string{"CLIENT", "LIST", "ID"}
	for i := 3; i < cmd.Len(); i++ {
		id, here := virtualID(cmd.Arg(i))
		if real := s.p.serverID(id); here && real != 0 {
			args = append(args, strconv.FormatInt(real, 10))
		} else {
			args = append(args, string(cmd.Arg(i))) // the server lists nobody for an id from here
		}
	}
	s.submit(resp.AppendCommand(nil, args...), 1)
}

// serverID is the server's id of the connection that a session has to itself, 0 if
// it has none.
func (p *Proxy) serverID(id int64) int64 {
	if s := p.sessions.find(id); s != nil {
		return s.private.Load()
	}
	return 0
}

// virtualID reads an id and reports whether it is one of this proxy's.
func virtualID(arg []byte) (id int64, here bool) {
	id, err := strconv.ParseInt(string(arg), 10, 64)
	return id, err == nil && id >= firstID
}

// blockedOn is the connection on which a session's blocking command is under way, nil if
// there is none. It is for a CLIENT UNBLOCK that a client has sent, after which the
// connection is not used for another.
func (p *Proxy) blockedOn(id int64) *batcher.Conn {
	s := p.sessions.find(id)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active == nil || !s.active.patient || s.active.settled {
		return nil
	}
	s.active.conn.Aim()
	return s.active.conn
}

// replaceArg encodes cmd with argument i replaced.
func replaceArg(cmd resp.Command, i int, with string) []byte {
	args := make([]string, cmd.Len())
	for k := range args {
		args[k] = string(cmd.Arg(k))
	}
	args[i] = with
	return resp.AppendCommand(nil, args...)
}

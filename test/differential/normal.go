package differential

import "strings"

// leeway is a set of ways in which two correct replies may differ.
type leeway uint8

const (
	// order: the elements are in the order of a hash table, whose seed each server draws.
	order leeway = 1 << iota
	// numbers: integers not below zero, and bulks that are one, are times, ids or sizes.
	numbers
	// content: only the type of the reply is comparable.
	content
	// names: what was told about a connection may tell of the one behind the proxy.
	names
	// lost: the proxy may say that it cannot answer.
	lost

	exact leeway = 0
)

// allowance is one entry of the list of permitted differences.
type allowance struct {
	commands string // names, or container|subcommand
	leeway   leeway
	why      string
}

// allowances is everything that may differ between the two servers. Replies are compared byte for
// byte first; an allowance is looked at only if they differ. Errors never have any.
var allowances = []allowance{
	{"smembers sdiff sinter sunion spop srandmember keys scan sscan hscan zscan hgetall hkeys hvals hrandfield zrandmember",
		order, "the order of a hash table"},
	{"command command|list command|docs command|info pubsub|channels pubsub|shardchannels function|list function|stats config|get acl|getuser acl|cat",
		order, "tables of the server, in the order of a hash table"},
	{"ttl pttl expiretime pexpiretime httl hpttl hexpiretime hpexpiretime xpending xinfo|stream xinfo|consumers xinfo|groups object|idletime object|freq lastsave memory|usage",
		numbers, "measured against the time of day, or in bytes of the allocator"},
	{"hello client|id client|trackinginfo client|getredir",
		numbers, "ids of connections: the proxy's are virtual"},
	{"info client|list client|info time latency|histogram latency|doctor memory|stats memory|doctor memory|malloc-stats slowlog|get acl|log acl|list acl|genpass randomkey lolwut debug role vinfo commandlog|get cluster|slot-stats",
		content, "what the server says of itself, its clients, its clock, or draws"},
	{"dump function|dump", content, "an image of a hash table, in its order"},
	{"wait waitaof", lost, "the connection of the last write ends with an open transaction or subscription at RESET"},
}

var leeways = func() map[string]leeway {
	m := map[string]leeway{}
	for _, a := range allowances {
		for _, name := range strings.Fields(a.commands) {
			m[name] |= a.leeway
		}
	}
	return m
}()

// leewayOf returns what the reply to a command may differ in.
func leewayOf(args []string) leeway {
	if len(args) == 0 {
		return exact
	}
	name := strings.ToLower(args[0])
	l := leeways[name]
	if len(args) > 1 {
		l |= leeways[name+"|"+strings.ToLower(args[1])]
	}
	return l
}

// normal returns a reply without what may differ.
func normal(raw string, l leeway) string {
	if l == exact {
		return raw
	}
	n, rest := parse(raw)
	if rest != "" {
		panic("differential: more than one reply")
	}
	if l&names != 0 { // first: no name and a name are the same, but not of one type
		n.each(hideName)
	}
	if l&content != 0 {
		hideContent(&n)
		return n.String()
	}
	if l&numbers != 0 {
		n.each(hideNumber)
	}
	if l&order != 0 {
		n.sorted()
	}
	return n.String()
}

// hideContent keeps the type of a reply, and errors as they are.
func hideContent(n *node) {
	switch n.kind() {
	case '-', '!', '_':
	case '$':
		if n.line != "$-1\r\n" {
			n.line, n.body = "$0\r\n", "\r\n"
		}
	case '*', '~', '%', '>':
		if n.line[1] != '-' {
			n.line, n.kids = n.line[:1]+"0\r\n", nil
		}
	default:
		n.line, n.body = n.line[:1]+"\r\n", ""
	}
}

// waitLost is what the proxy says to WAIT when it cannot answer.
const waitLost = "-ERR streamproxy: the connection that carried your last write is lost; WAIT cannot answer\r\n"

// hideName masks what may be the name of a connection: none, one that a script gives, or the proxy's own.
func hideName(n *node) {
	switch {
	case n.line == "$-1\r\n", n.line == "_\r\n":
	case n.kind() == '$' && (n.text() == "me" || n.text() == "you" || strings.HasPrefix(n.text(), "streamproxy:")):
	default:
		return
	}
	n.line, n.body = "_\r\n", ""
}

// hideNumber masks an integer that is not negative: a sign says "none" and is kept.
func hideNumber(n *node) {
	digits := n.text() != "" && strings.Trim(n.text(), "0123456789") == ""
	switch {
	case !digits:
	case n.kind() == ':':
		n.line = ":0\r\n"
	case n.kind() == '$' && n.body != "":
		n.line, n.body = "$1\r\n", "0\r\n"
	}
}

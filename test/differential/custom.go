package differential

import "strconv"

// leftOut names commands that no random script sends, with the reason.
var leftOut = map[string]string{
	"shutdown": "ends the server", "debug": "most of it ends or stops the server; the table has the harmless part",
	"monitor": "shows what the other connections do, the proxy's own too",
	"sync":    "makes the connection a replica's", "psync": "as sync", "replconf": "as sync",
	"replicaof": "changes the server's role", "slaveof": "as replicaof", "failover": "as replicaof",
	"save": "a file", "bgsave": "a child process, busy at random times", "bgrewriteaof": "as bgsave",
	"migrate": "dials", "module|load": "a file", "module|loadex": "a file", "pfselftest": "takes seconds", "pfdebug": "internal",
	"acl|setuser": "outlives the script", "acl|deluser": "outlives the script", "acl|load": "a file", "acl|save": "a file",
	"config|set": "outlives the script", "config|rewrite": "a file", "config|resetstat": "outlives the script",
	"client|pause": "stops the server's other clients", "client|unpause": "as pause",
	"client|kill":    "names addresses and ids of the server's connections; the table has what names none",
	"client|reply":   "no replies: see silence",
	"client|getname": "within a transaction the server answers, for the upstream connection; the table has the rest", "script|debug": "a child process",
	"quit": "ends the connection: see farewell", "function|restore": "needs an image; the table has one",
	"spop": "random, so that the data would differ afterwards; see custom", "lolwut": "art",
	"latency|reset": "outlives the script", "memory|purge": "takes long", "waitaof": "as wait", "wait": "after a transaction ended by RESET the proxy says that it cannot answer; the table has the rest",
	"sort": "see custom", "sort_ro": "see custom", "scan": "see custom", "sscan": "see custom", "hscan": "see custom",
	"zscan": "see custom", "srandmember": "see custom", "hrandfield": "see custom", "zrandmember": "see custom",
	"xadd": "see custom", "xread": "see custom", "xreadgroup": "see custom", "randomkey": "random",
	"subscribe": "see listen", "psubscribe": "see listen", "ssubscribe": "see listen",
	"unsubscribe": "see listen", "punsubscribe": "see listen", "sunsubscribe": "see listen",
	"vrandmember": "random", "vsim": "a graph that is built at random", "vlinks": "as vsim", "vinfo": "as vsim",
	"multi": "see transaction", "exec": "see transaction", "discard": "see transaction",
}

// maker builds one command by hand.
type maker func(r *source) []string

// custom makes what the grammar alone would make random, endless or always wrong. Collections are
// drawn whole, because what is drawn in part is random.
var custom = []struct {
	keyed bool
	make  maker
}{
	{true, func(r *source) []string { return []string{"SPOP", r.key("set"), "1000"} }},
	{true, func(r *source) []string { return []string{"SRANDMEMBER", r.key("set"), "1000"} }},
	{true, func(r *source) []string { return []string{"HRANDFIELD", r.key("hash"), "1000", "WITHVALUES"} }},
	{true, func(r *source) []string { return []string{"ZRANDMEMBER", r.key("sorted-set"), "1000"} }},
	{false, func(r *source) []string { return []string{"SCAN", "0", "COUNT", "1000", "TYPE", r.pick("list", "set")} }},
	{true, func(r *source) []string { return []string{"SSCAN", r.key("set"), "0", "COUNT", "1000"} }},
	{true, func(r *source) []string { return []string{"HSCAN", r.key("hash"), "0", "COUNT", "1000"} }},
	{true, func(r *source) []string { return []string{"ZSCAN", r.key("sorted-set"), "0", "MATCH", "[a-c]"} }},
	{true, sortCommand},
	{true, xadd}, {true, xadd}, {true, xread}, {true, xread}, {true, xreadGroup}, {true, xreadGroup},
	{true, func(r *source) []string {
		return []string{"XGROUP", "CREATE", r.key("stream"), r.pick("g1", "g2"), "0", "MKSTREAM"}
	}},
	{true, func(r *source) []string { return []string{"SADD", r.key("set"), r.value(), r.value()} }},
	{true, func(r *source) []string { return []string{"HSET", r.key("hash"), "f1", r.value(), "f2", r.value()} }},
	{true, func(r *source) []string { return []string{"INCR", r.key("string")} }},
	{true, func(r *source) []string { return []string{"RPUSH", r.key("list"), r.value(), r.value()} }},
	{false, func(r *source) []string { return []string{"MODULE", "LIST"} }},
	{false, func(r *source) []string { return []string{"CONFIG", "GET", r.pick("hz", "maxmemory", "none")} }},
	{false, func(r *source) []string { return []string{"FUNCTION", "LOAD", "REPLACE", library} }},
	{false, func(r *source) []string { return []string{"FCALL", "count", "1", r.key("string")} }},
	{true, func(r *source) []string { return []string{"ECHO", r.value()} }},
	{true, func(r *source) []string { return []string{"SELECT", strconv.Itoa(r.IntN(3))} }},
	{true, func(r *source) []string { return []string{"HELLO", r.pick("2", "3")} }},
	{true, func(r *source) []string { return []string{"RESET"} }},
	{true, func(r *source) []string { return []string{"CLIENT", r.pick("ID", "INFO", "NOSUCH")} }},
	{true, func(r *source) []string { return []string{"CLIENT", "SETNAME", r.pick("me", "", "a b")} }},
	{true, func(r *source) []string {
		return []string{r.pick("NOSUCH", "get", "", "GET\r\n", "XLEN"), r.value(), r.value()}
	}},
}

// sortCommand sorts by content only: by weights that are equal, the order would be open.
func sortCommand(r *source) []string {
	c := []string{r.pick("SORT", "SORT_RO", "sort"), r.key(r.pick("list", "set", "sorted-set"))}
	if r.oneIn(2) {
		c = append(c, "LIMIT", "0", "2")
	}
	if r.oneIn(2) {
		c = append(c, r.pick("ASC", "DESC"))
	}
	if r.oneIn(2) {
		c = append(c, "ALPHA")
	}
	if r.oneIn(3) {
		c = append(c, "STORE", r.key("list"))
	}
	return c
}

// xadd gives its ids: the server's own come from its clock.
func xadd(r *source) []string {
	c := []string{"XADD", r.key("stream")}
	if r.oneIn(4) {
		c = append(c, "NOMKSTREAM")
	}
	if r.oneIn(4) {
		c = append(c, r.pick("MAXLEN", "maxlen"), r.pick("=", "~"), "5")
	}
	return append(c, strconv.Itoa(1+r.IntN(8))+"-"+r.pick("*", "*", "1", "2"), "f", r.value())
}

func xread(r *source) []string {
	return streams(r, []string{r.pick("XREAD", "xRead")}, "0", "$", "1-1", "3")
}

func xreadGroup(r *source) []string {
	c := []string{"XREADGROUP", "GROUP", r.pick("g1", "g2"), r.pick("c1", "STREAMS", "block")}
	if r.oneIn(4) {
		c = append(c, "NOACK")
	}
	return streams(r, c, ">", ">", "0", "2-0")
}

// streams adds options, streams and ids. A BLOCK of 0 is not among them: nothing would end it.
func streams(r *source, c []string, ids ...string) []string {
	if r.oneIn(2) {
		c = append(c, "COUNT", r.pick("1", "2", "10"))
	}
	if r.oneIn(3) {
		c = append(c, r.pick("BLOCK", "block"), r.pick("1", "3", "8"))
	}
	c = append(c, r.pick("STREAMS", "streams"))
	n := 1 + r.IntN(2)
	for range n {
		c = append(c, r.key("stream"))
	}
	for range n {
		c = append(c, r.pick(ids...))
	}
	return c
}

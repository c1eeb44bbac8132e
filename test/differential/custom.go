package differential

import "strconv"

// leftOut names commands that are not made from the grammar, with the reason; "see" says what makes
// them instead.
var leftOut = map[string]string{
	"shutdown": "ends the server; see custom for what does not", "debug": "most of it ends or stops the server; see mode, and the table",
	"monitor": "see eavesdrop", "sync": "makes the connection a replica's, whose stream tells of the server's age",
	"psync": "as sync", "replconf": "see mode", "replicaof": "see demote", "slaveof": "see demote", "failover": "see custom",
	"bgsave": "a child process, busy at random times", "bgrewriteaof": "as bgsave", "migrate": "dials; see custom",
	"pfselftest": "takes seconds; the table has it", "pfdebug": "see custom",
	"acl|setuser": "outlives the script; see custom", "acl|deluser": "outlives the script; see custom",
	"config|set":   "outlives the script; see custom",
	"client|pause": "see pause", "client|unpause": "see pause", "client|kill": "see kill", "client|unblock": "see unblock",
	"client|reply": "see silence", "client|tracking": "see track", "script|debug": "see mode",
	// From 7.2 on a wrong password is not answered where replies are pending: see identify.
	"auth": "see identify", "hello": "see greet",
	"quit": "see farewell", "function|restore": "needs an image; the table has one",
	"spop": "random, so that the data would differ afterwards; see custom", "wait": "see custom", "waitaof": "see custom",
	"sort": "see custom", "sort_ro": "see custom", "scan": "see custom", "sscan": "see custom", "hscan": "see custom",
	"zscan": "see custom", "srandmember": "see custom", "hrandfield": "see custom", "zrandmember": "see custom",
	"xadd": "see custom", "xread": "see custom", "xreadgroup": "see custom", "randomkey": "random",
	"subscribe": "see listen", "psubscribe": "see listen", "ssubscribe": "see listen",
	"unsubscribe": "see listen", "punsubscribe": "see listen", "sunsubscribe": "see listen",
	"vrandmember": "random", "vsim": "see custom", "vlinks": "a graph that is built at random",
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
	{true, func(r *source) []string { return []string{"ZRANDMEMBER", r.key("sorted-set"), "1000", "WITHSCORES"} }},
	{false, func(r *source) []string {
		return []string{"SCAN", "0", "COUNT", "1000", r.pick("TYPE", "MATCH"), r.pick("list", "set", "s*")}
	}},
	{true, func(r *source) []string {
		return []string{"SSCAN", r.key("set"), "0", "COUNT", "1000", "MATCH", r.pick("*", "[a-c]*")}
	}},
	{true, func(r *source) []string {
		return []string{"HSCAN", r.key("hash"), "0", "MATCH", "f*", "COUNT", r.pick("1000", "x")}
	}},
	{true, func(r *source) []string {
		return []string{"ZSCAN", r.key("sorted-set"), "0", "MATCH", "[a-c]", "count", "1000"}
	}},
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
	{true, func(r *source) []string {
		return []string{"WAIT", r.pick("0", "0", "1", "x"), r.pick("1", "2", "-1", "x")}
	}},
	{true, func(r *source) []string {
		return []string{"WAITAOF", r.pick("0", "0", "1"), r.pick("0", "1"), r.pick("1", "2", "-1")}
	}},
	{true, func(r *source) []string {
		return []string{"PFDEBUG", r.pick("GETREG", "DECODE", "ENCODING", "TODENSE"), r.key("hyperloglog")}
	}},
	{true, func(r *source) []string {
		return []string{"VSIM", r.key("vector_set"), "ELE", r.value(), "COUNT", "3", "TRUTH", "WITHSCORES"}
	}},
	{false, rare},
	{true, func(r *source) []string { return []string{"RESET"} }},
	{true, func(r *source) []string { return []string{"CLIENT", r.pick("ID", "INFO", "NOSUCH")} }},
	{true, func(r *source) []string { return []string{"CLIENT", "SETNAME", r.pick("me", "", "a b")} }},
	{true, func(r *source) []string {
		return []string{r.pick("NOSUCH", "get", "", "GET\r\n", "XLEN"), r.value(), r.value()}
	}},
}

// rare is what must not be said in just any form.
func rare(r *source) []string {
	return words(r.pick(
		"SHUTDOWN ABORT", "SHUTDOWN NOSUCH", "SHUTDOWN NOSAVE SAVE", "FAILOVER ABORT", "FAILOVER TIMEOUT x", "FAILOVER TO none",
		`MIGRATE 127.0.0.1 1 none 0 5`, `MIGRATE 127.0.0.1 1 "" 0 5 COPY REPLACE KEYS none none2`, `MIGRATE 127.0.0.1 1 st1 x 5`,
		"ACL SETUSER temp1 on nopass ~a* &c* +get -@all +@read", "ACL SETUSER temp2 reset (+get ~x) resetpass", "ACL SETUSER temp1 nosuch",
		"ACL GETUSER temp1", "ACL DRYRUN temp1 GET a", "ACL DRYRUN temp1 SET b c", "ACL DELUSER temp1 temp3", "ACL LIST", "ACL USERS",
		"CONFIG SET hz 100", "CONFIG SET maxmemory 0 hz 100", "CONFIG SET nosuch 1", "CONFIG SET maxmemory x", "CONFIG SET hz",
		"CONFIG GET max* hz", "COMMAND LIST FILTERBY ACLCAT read", "COMMAND LIST FILTERBY PATTERN x*",
		"COMMAND LIST FILTERBY MODULE none", "COMMAND GETKEYS SET a b", "COMMAND GETKEYS EVAL 'return 1' 2 a b", "COMMAND GETKEYSANDFLAGS LMOVE a b LEFT RIGHT",
		"FLUSHALL SYNC", "CLUSTER RESET HARD", "HSCAN ha1 0 COUNT 1000 NOVALUES", "ZSCAN so1 0 COUNT 1000 NOSCORES", "BITFIELD bi1 OVERFLOW SAT INCRBY u8 0 200",
		"BITFIELD bi1 OVERFLOW WRAP SET i8 #1 300 GET u4 2", "BITFIELD bi1 OVERFLOW FAIL INCRBY u8 0 200", "MODULE LOAD /none", "FUNCTION LIST WITHCODE",
		"CLIENT LIST TYPE normal", "CLIENT LIST ID 1 2", "DEBUG NOSUCH", "CLIENT GETNAME", "CLIENT GETNAME x"))
}

// sortCommand sorts by content: by weights that are equal the order is that of the input, which only
// a list has.
func sortCommand(r *source) []string {
	kind := r.pick("list", "set", "sorted-set")
	c := []string{r.pick("SORT", "SORT_RO", "sort"), r.key(kind)}
	if kind == "list" && r.oneIn(3) {
		c = append(c, "BY", r.pick(r.prefix+"st*", "nosort", r.prefix+"ha1->f*"))
	}
	if r.oneIn(2) {
		c = append(c, "LIMIT", "0", "2")
	}
	if r.oneIn(2) {
		c = append(c, r.pick("ASC", "DESC"))
	}
	if r.oneIn(2) {
		c = append(c, "ALPHA")
	}
	for r.oneIn(3) {
		c = append(c, "GET", r.pick("#", r.prefix+"st*", r.prefix+"ha*->f1"))
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
	if r.oneIn(8) {
		c = append(c, r.pick("KEEPREF", "DELREF", "ACKED"))
	}
	if r.oneIn(4) {
		c = append(c, r.pick("MAXLEN", "maxlen", "MINID"), r.pick("=", "~"), r.pick("5", "3", "2-1"))
		if r.oneIn(3) {
			c = append(c, "LIMIT", r.pick("10", "0", "-1"))
		}
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
	if r.oneIn(20) {
		c = append(c, "CLAIM", r.pick("99999999", "x"))
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

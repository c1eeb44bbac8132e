package differential

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// source draws everything that is random in a script.
type source struct {
	*rand.Rand
	prefix string // of keys and channels: what several connections under way at a time need
}

func (r *source) pick(of ...string) string { return of[r.IntN(len(of))] }

// oneIn is true once in n times.
func (r *source) oneIn(n int) bool { return r.IntN(n) == 0 }

// key draws a key that most likely holds what the command's group is about.
func (r *source) key(group string) string {
	groups := []string{"string", "list", "set", "sorted-set", "hash", "stream", "hyperloglog", "geo", "bitmap", "vector_set"}
	initial := "k"
	if r.IntN(7) > 0 {
		for _, g := range groups {
			if g == group {
				initial = g[:2]
			}
		}
	}
	if initial == "k" {
		initial = r.pick(groups...)[:2]
	}
	return r.prefix + initial + strconv.Itoa(r.IntN(3))
}

// value draws bytes, a few times in a thousand many.
func (r *source) value() string {
	switch r.IntN(40) {
	case 0:
		return ""
	case 1:
		return "\x00\r\n\xff*1\r\n$4\r\nPING\r\n"
	case 2:
		return strings.Repeat("v", 1+r.IntN(300))
	case 3:
		return r.pick("3.0e3", "-1", "0", "nan", " 1", "9223372036854775807")
	case 4:
		switch r.IntN(24) {
		case 0, 1:
			return strings.Repeat("big", r.IntN(60_000))
		case 2:
			return strings.Repeat("s", r.around())
		}
	}
	return r.pick("a", "b", "c", "d", "1", "2", "3", "10")
}

// named draws what an argument's name asks for; false if the name says nothing.
func (r *source) named(name string) (string, bool) {
	switch name {
	case "channel", "shardchannel":
		return r.prefix + r.pick("ch1", "ch2"), true
	case "sha1":
		sum := sha1.Sum([]byte(r.pick(scripts...)))
		return hex.EncodeToString(sum[:]), true
	}
	values := poolOf[name]
	switch {
	case values == nil:
		return "", false
	case !slow[name] && r.oneIn(60):
		return r.value(), true
	}
	return r.pick(values...), true
}

// poolOf finds the pool of a name.
var poolOf = func() map[string][]string {
	m := map[string][]string{}
	for names, values := range pools {
		for _, name := range strings.Fields(names) {
			m[name] = values
		}
	}
	return m
}()

// slow names arguments of which a wrong value could mean a very long wait or a lot of memory.
var slow = map[string]bool{"timeout": true, "milliseconds": true, "seconds": true, "ttl": true, "numreplicas": true,
	"offset": true, "unix-time-seconds": true, "unix-time-milliseconds": true, "client-id": true, "cursor": true, "count": true}

// pools holds values by the names that COMMAND DOCS gives to arguments. Nothing expires while a
// script runs, not even at once: whether an expired key is gone yet is a matter of time. No count
// makes a server loop, no offset makes it allocate.
var pools = map[string][]string{
	"timeout":                  {"0.001", "0.004", "0.01", "1e-3", "-1", "x"},
	"seconds milliseconds ttl": {"100000", "200000", "0", "-1", "x", "9223372036854775807"},
	"unix-time-seconds unix-time-milliseconds":                    {"4102444800000", "-1", "x"},
	"count len limit rank num-matches entries_added entries_read": {"0", "1", "2", "3", "10", "-1", "-2", "1000"},
	"cursor":                                 {"0"},
	"index":                                  {"0", "1", "2", "-1", "3", "100", "x"},
	"index1 index2 db destination-db":        {"0", "1", "2", "99"},
	"offset":                                 {"0", "1", "2", "7", "8", "100", "#1", "-1", "9223372036854775807"},
	"start stop end":                         {"0", "1", "2", "-1", "-2", "10", "-", "+", "(1", "1-1", "2", "5-0"},
	"min max":                                {"-inf", "+inf", "0", "1", "(1", "2", "-", "+", "[a", "(c", "nan"},
	"id last-id max_deleted_entry_id":        {"1-1", "2-1", "3-0", "5-2", "0", "$", "0-0", ">", "1", "-", "x"},
	"threshold":                              {"0", "1", "2", "3-0", "1000"},
	"min-idle-time ms":                       {"0", "99999999", "-1", "x"},
	"group groupname":                        {"g1", "g2"},
	"consumer consumername":                  {"c1", "c2"},
	"field":                                  {"f1", "f2", "f3", "", "n"},
	"member member1 member2 element pivot":   {"a", "b", "c", "d", "1", "2", "Palermo", "Catania"},
	"score increment decrement":              {"1", "2", "0", "-1", "1.5", "3.0e2", "inf", "nan", "9223372036854775807", "x"},
	"weight":                                 {"1", "2", "0", "0.5", "x"},
	"longitude":                              {"13.361389", "15.087269", "0", "181"},
	"latitude":                               {"38.115556", "37.502669", "0", "91"},
	"radius width height":                    {"200", "1", "0", "-1", "1e9"},
	"numreplicas":                            {"0", "1"},
	"protover":                               {"2", "3", "2", "3", "4", "x"},
	"script":                                 scripts,
	"function":                               {"echo", "count", "fail", "none"},
	"function-code":                          {library, "#!lua name=broken\nx(", "no code"},
	"library-name library-name-pattern":      {"lib", "l*", "none"},
	"client-id":                              {"987654321"},
	"username":                               {"default", "nobody"},
	"password":                               {"x", ""},
	"parameter":                              {"maxmemory", "hz", "no-such", "list-*"},
	"pattern":                                {"*", "s*", "?", "[a-c]*", "", "ch*"},
	"prefix":                                 {"st", "li", "h"},
	"encoding":                               {"u8", "i16", "i64", "u63", "u64", "i1"},
	"serialized-value":                       {"", "x", "\x00\x01a\x0b\x00\xa9\xcf\x9d\x87\x3c\x9f\x5c\x2e"},
	"operation":                              {"AND", "OR", "XOR", "NOT", "x"},
	"bit":                                    {"0", "1", "2"},
	"type":                                   {"string", "list", "zset", "hash", "stream", "x"},
	"subcommand module-name path event name": {"none", "/none"},
	"command command-name":                   {"get", "set", "nonesuch", "xadd", "get x"},
	"category categoryname":                  {"read", "none", "blocking"},
	"clientname connection-name":             {"me", "", "a b", "you"},
	"section":                                {"server", "all", "none"},
	"version":                                {"5", "6"},
	"slot start-slot end-slot config-epoch":  {"0", "1", "16384"},
	"host ip node-id replicationid ip:port":  {"127.0.0.9", "none"},
	"port cluster_bus_port bits":             {"1", "99999"},
}

// scripts is what EVAL runs: every type of reply, errors, nesting, both protocols, size.
var scripts = []string{
	"return 1", "return redis.call('incr', KEYS[1])", "return {KEYS[1], ARGV[1], 1.9, false, true}",
	"return redis.status_reply('FINE')", "return redis.error_reply('MY fault')", "return {err='x'}", "return nil",
	"return {1, {2, {3, {4, {redis.status_reply('deep'), false}}}}}",
	"redis.setresp(3); return redis.call('hgetall', KEYS[1])", "redis.setresp(3); return {double=1.5}",
	"redis.setresp(3); return {map={a=1}}", "redis.setresp(3); return true", "redis.setresp(3); return {set={a=true}}",
	"redis.setresp(3); return {big_number='123456789123456789123456789'}", "return {big_number='none'}",
	"return {{big_number=''}, {big_number='1\\r\\n2'}, {double=0/0}, {double=-1/0}}",
	"redis.setresp(3); return {verbatim_string={format='txt', string='verbatim'}}",
	"return redis.call('get', KEYS[1])", "return redis.pcall('lpush', KEYS[1], 'x')",
	"#!lua flags=no-writes\nreturn redis.call('get', KEYS[1])", "#!lua flags=no-writes\nreturn redis.call('incr', KEYS[1])", "#!lua name=x\nreturn 1",
	"redis.call('select', 1) return redis.call('set', KEYS[1], 'in one')", "return redis.call('blpop', KEYS[1], 0)", "return redis.call('multi')",
	"redis.setresp(3); return redis.call('zrange', KEYS[1], 0, -1, 'withscores')", "return redis.pcall('xread', 'block', 0, 'streams', KEYS[1], '$')",
	"return {redis.pcall('get', KEYS[1]), redis.pcall('hello', '3'), redis.pcall('subscribe', 'x')}", "error({err='THROWN it'})", "return redis.call('publish', KEYS[1], 'x')",
	"return redis.call('nosuch')", "syntax error", "local t = {} for i = 1, 3000 do t[i] = i end return t",
	"return string.rep('x', 70000)", "return redis.call('set', KEYS[1], ARGV[1] or 'v')", "return cjson.encode({1, 2})",
}

// library is a function library in the form of Redis 7.
const library = "#!lua name=lib\n" +
	"redis.register_function('echo', function(k, a) return {k, a} end)\n" +
	"redis.register_function('count', function(k) return redis.call('incr', k[1]) end)\n" +
	"redis.register_function{function_name='fail', callback=function() return redis.error_reply('FN bad') end, flags={'no-writes'}}\n"

// integer draws a number where no name says which.
func (r *source) integer() string {
	return r.pick("0", "1", "2", "3", "-1", "10", "x", "1.5", "", "9223372036854775807", fmt.Sprint(r.IntN(100)))
}

// thresholds are the sizes at which something changes in the proxy: what one read brings, what a
// command may have to be collected, what makes a reply a giant.
var thresholds = []int{16 << 10, 16 << 10, 32 << 10, 64 << 10, 64 << 10, 64 << 10, 1 << 20}

// around draws a size close to a threshold.
func (r *source) around() int { return thresholds[r.IntN(len(thresholds))] - 70 + r.IntN(140) }

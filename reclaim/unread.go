package reclaim

import (
	"math"
	"strconv"
	"strings"
	"time"

	"streamproxy/internal/resp"
)

// Unread returns the commands that give back what an XREADGROUP has read for a
// client that will never see it, and how many they are. Each entry stays with its
// consumer, with a delivery count of 0: XCLAIM with JUSTID counts no delivery, and
// RETRYCOUNT sets the count outright. Nothing is given back for NOACK, which makes
// no pending entries, nor for a read of the consumer's own history, which moves
// none.
func Unread(cmd resp.Command, reply []byte) (commands []byte, n int) {
	r, ok := parseGroupRead(cmd)
	if !ok {
		return nil, 0
	}
	return unread(r, reply, func(streamEntries) []string { return nil })
}

// unread writes the commands; more adds options to that of one stream.
func unread(r groupRead, reply []byte, more func(streamEntries) []string) (commands []byte, n int) {
	if r.noack {
		return nil, 0
	}
	v, _, err := resp.Parse(reply)
	if err != nil || v.Null {
		return nil, 0
	}
	for _, s := range streamsOf(v) {
		if !r.fresh[string(s.key)] || len(s.ids) == 0 {
			continue
		}
		args := []string{"XCLAIM", string(s.key), r.group, r.consumer, "0"}
		args = append(args, s.ids...)
		args = append(append(args, more(s)...), "RETRYCOUNT", "0", "JUSTID")
		commands = resp.AppendCommand(commands, args...)
		n++
	}
	return commands, n
}

// groupRead is what an XREADGROUP asks for.
type groupRead struct {
	group, consumer string
	noack           bool
	claims          bool            // CLAIM is given: the server looks for abandoned entries itself
	count           int             // 0: no limit
	blocks          bool            // BLOCK is given
	block           time.Duration   // its value, 0 for ever
	streams         []string        // in the command's order
	fresh           map[string]bool // streams read with >
}

// freshStreams are the streams read with >, in the command's order.
func (r *groupRead) freshStreams() (list []string) {
	for _, s := range r.streams {
		if r.fresh[s] {
			list = append(list, s)
		}
	}
	return list
}

// option reads the value of an option that has one.
func (r *groupRead) option(name string, value []byte) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return
	}
	switch name {
	case "COUNT":
		r.count = int(max(n, 0))
	case "BLOCK":
		r.blocks, r.block = true, time.Duration(min(n, maxMillis))*time.Millisecond
	}
}

// maxMillis keeps a duration in milliseconds within its type.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

// parseGroupRead reads XREADGROUP's options by position, as the server does.
func parseGroupRead(cmd resp.Command) (r groupRead, ok bool) {
	n := cmd.Len()
	for i := 1; i < n; i++ {
		switch word := strings.ToUpper(string(cmd.Arg(i))); word {
		case "GROUP":
			if i+2 >= n {
				return r, false
			}
			r.group, r.consumer = string(cmd.Arg(i+1)), string(cmd.Arg(i+2))
			i += 2
		case "COUNT", "BLOCK", "CLAIM":
			i++
			r.claims = r.claims || word == "CLAIM"
			r.option(word, cmd.Arg(i))
		case "NOACK":
			r.noack = true
		case "STREAMS":
			keys := n - i - 1
			if keys == 0 || keys%2 != 0 || r.group == "" {
				return r, false
			}
			r.fresh = make(map[string]bool, keys/2)
			for k := i + 1; k <= i+keys/2; k++ {
				name := string(cmd.Arg(k))
				old, again := r.fresh[name] // named twice, it is fresh only if it is so both times
				r.streams = append(r.streams, name)
				r.fresh[name] = string(cmd.Arg(k+keys/2)) == ">" && (old || !again)
			}
			return r, true
		default:
			return r, false
		}
	}
	return r, false
}

// streamEntries are the entries of one stream in a reply.
type streamEntries struct {
	key []byte
	ids []string
}

// streamsOf reads the reply to XREADGROUP: pairs of a stream and its entries, in
// RESP2 as an array of pairs, in RESP3 as a map.
func streamsOf(v resp.Value) (list []streamEntries) {
	add := func(key, entries resp.Value) {
		s := streamEntries{key: key.Text}
		for _, e := range entries.Elems {
			if len(e.Elems) > 0 {
				s.ids = append(s.ids, string(e.Elems[0].Text))
			}
		}
		list = append(list, s)
	}
	if v.Kind == '%' {
		for i := 0; i+1 < len(v.Elems); i += 2 {
			add(v.Elems[i], v.Elems[i+1])
		}
		return list
	}
	for _, pair := range v.Elems {
		if len(pair.Elems) == 2 {
			add(pair.Elems[0], pair.Elems[1])
		}
	}
	return list
}

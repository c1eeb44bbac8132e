package reclaim

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"streamproxy/internal/resp"
)

// ReturnUnread gives back what an XREADGROUP has read for a client that will never see
// it. Each entry stays with its consumer, as long idle as it is, with a delivery count of
// 0. An entry that has come to somebody else since stays theirs: the reply may have been
// long on its way, and so may be what is sent now. at is when the reply had arrived.
// Nothing is given back for NOACK, which makes no pending entries, nor for a read of the
// consumer's own history, which moves none. An error says that some may wait for one
// more min-idle.
func ReturnUnread(ctx context.Context, up Upstream, id Identity, cmd resp.Command, reply []byte, at time.Time) error {
	r, ok := parseGroupRead(cmd)
	if !ok {
		return nil
	}
	return restoreList(ctx, up, id, unread(r, reply, at, func(streamEntries) time.Duration { return 0 }))
}

// unread lists what goes back; more is by how much its idle time is to be raised.
func unread(r groupRead, reply []byte, at time.Time, more func(streamEntries) time.Duration) (list []*restoration) {
	if r.noack {
		return nil
	}
	v, _, err := resp.Parse(reply)
	if err != nil || v.Null {
		return nil
	}
	for _, s := range streamsOf(v) {
		if !r.fresh[string(s.key)] || len(s.ids) == 0 {
			continue
		}
		back := &restoration{stream: string(s.key), group: r.group, ours: r.consumer, at: at}
		idle := more(s)
		for _, id := range s.ids {
			back.entries = append(back.entries, entry{id: id, was: &pendingEntry{id: id, owner: r.consumer, idle: idle}})
		}
		list = append(list, back)
	}
	return list
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

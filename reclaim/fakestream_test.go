package reclaim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The stream commands of fakeServer.

func (f *fakeServer) stream(name string) *fakeStream {
	s := f.streams[name]
	if s == nil {
		s = &fakeStream{groups: make(map[string]*fakeGroup)}
		f.streams[name] = s
	}
	return s
}

func (f *fakeServer) group(stream, group string) (*fakeGroup, string) {
	if s := f.streams[stream]; s != nil && s.groups[group] != nil {
		return s.groups[group], ""
	}
	return nil, "-NOGROUP No such key '" + stream + "' or consumer group '" + group + "'\r\n"
}

func (f *fakeServer) xadd(args []string) string {
	s := f.stream(args[1])
	id := fakeID{ms: uint64(f.now().UnixMilli())}
	if !slices.Contains(args[2:], "*") { // behind options, none of which is carried out
		id = parseFakeID(args[2])
	} else if n := len(s.ids); n > 0 && !s.ids[n-1].less(id) {
		id = s.ids[n-1]
		id.seq++
	}
	s.ids = append(s.ids, id)
	close(f.changed)
	f.changed = make(chan struct{})
	return bulkOf(id.String())
}

func (f *fakeServer) xgroup(args []string) string {
	g, errText := f.group(args[2], args[3])
	switch strings.ToUpper(args[1]) {
	case "DESTROY":
		if g == nil {
			return ":0\r\n"
		}
		delete(f.streams[args[2]].groups, args[3])
		return ":1\r\n"
	case "DELCONSUMER":
		if g == nil {
			return errText
		}
		n := len(g.pel)
		maps.DeleteFunc(g.pel, func(_ fakeID, p *fakePending) bool { return p.owner == args[4] })
		delete(g.consumers, args[4])
		return fmt.Sprintf(":%d\r\n", n-len(g.pel))
	}
	f.stream(args[2]).groups[args[3]] = &fakeGroup{consumers: make(map[string]bool), pel: make(map[fakeID]*fakePending)}
	return "+OK\r\n"
}

func (f *fakeServer) xinfo(args []string) string {
	s := f.streams[args[2]]
	if s == nil {
		return "-ERR no such key\r\n"
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		g := s.groups[name]
		out = append(out, array(bulkOf("name"), bulkOf(name),
			bulkOf("pending"), fmt.Sprintf(":%d\r\n", len(g.pel)),
			bulkOf("last-delivered-id"), bulkOf(g.last.String())))
	}
	return array(out...)
}

func (f *fakeServer) xreadgroup(args []string) string {
	r, ok := parseGroupRead(scanCommand([]byte(commandOf(args...))))
	if !ok {
		return "-ERR syntax error\r\n"
	}
	var out []string
	for _, name := range r.streams {
		g, errText := f.group(name, r.group)
		if g == nil {
			return errText
		}
		g.consumers[r.consumer] = true
		if entries := f.readFresh(name, g, r); len(entries) > 0 {
			out = append(out, array(bulkOf(name), array(entries...)))
		}
	}
	if len(out) == 0 {
		return "*-1\r\n"
	}
	return array(out...)
}

// readFresh delivers what nobody has been given yet; r.fresh must be set for it.
func (f *fakeServer) readFresh(name string, g *fakeGroup, r groupRead) (entries []string) {
	for _, id := range f.streams[name].ids {
		if !g.last.less(id) || r.count > 0 && len(entries) == r.count {
			continue
		}
		g.last = id
		g.pel[id] = &fakePending{owner: r.consumer, at: time.Now(), count: 1}
		f.note(id, "read", r.consumer)
		entries = append(entries, f.entry(id))
	}
	return entries
}

func (f *fakeServer) entry(id fakeID) string {
	value := "v"
	if size := f.sizes[id]; size > 0 {
		value = strings.Repeat("v", size)
	}
	return array(bulkOf(id.String()), array(bulkOf("k"), bulkOf(value)))
}

func (f *fakeServer) xack(args []string) string {
	g, _ := f.group(args[1], args[2])
	if g == nil {
		return ":0\r\n"
	}
	n := 0
	for _, a := range args[3:] {
		id := parseFakeID(a)
		if g.pel[id] != nil {
			n++
			delete(g.pel, id)
			f.acked = append(f.acked, args[1]+" "+a)
		}
	}
	return fmt.Sprintf(":%d\r\n", n)
}

func (f *fakeServer) xdel(args []string) string {
	n := 0
	for _, a := range args[2:] {
		if s := f.streams[args[1]]; s != nil {
			before := len(s.ids)
			s.ids = slices.DeleteFunc(s.ids, func(id fakeID) bool { return id == parseFakeID(a) })
			n += before - len(s.ids)
		}
	}
	return fmt.Sprintf(":%d\r\n", n)
}

// deleted reports whether an entry is not in its stream any more.
func (f *fakeServer) deleted(stream string, id fakeID) bool {
	return !slices.Contains(f.streams[stream].ids, id)
}

func (f *fakeServer) del(args []string) string {
	n := 0
	for _, name := range args[1:] {
		if f.streams[name] != nil {
			n++
			delete(f.streams, name)
		}
	}
	return fmt.Sprintf(":%d\r\n", n)
}

func (f *fakeServer) flush([]string) string {
	clear(f.streams)
	clear(f.keys)
	clear(f.lists)
	return "+OK\r\n"
}

func (f *fakeServer) rename(args []string) string {
	if f.streams[args[1]] == nil {
		return "-ERR no such key\r\n"
	}
	f.streams[args[2]] = f.streams[args[1]]
	delete(f.streams, args[1])
	return "+OK\r\n"
}

// xpending is the long form.
func (f *fakeServer) xpending(args []string) string {
	g, errText := f.group(args[1], args[2])
	if g == nil {
		return errText
	}
	rest, minIdle := args[3:], time.Duration(0)
	if strings.EqualFold(rest[0], "IDLE") {
		minIdle = fakeMillis(rest[1])
		rest = rest[2:]
	}
	from, open := strings.CutPrefix(rest[0], "(")
	start, end := parseFakeID(from), fakeID{math.MaxUint64, math.MaxUint64}
	if rest[1] != "+" {
		end = parseFakeID(rest[1])
		if !strings.Contains(rest[1], "-") {
			end.seq = math.MaxUint64
		}
	}
	count, _ := strconv.Atoi(rest[2])
	var out []string
	for _, id := range g.sortedPEL() {
		p := g.pel[id]
		idle := time.Since(p.at)
		if id.less(start) || open && id == start || end.less(id) || idle < minIdle || len(out) == count {
			continue
		}
		out = append(out, array(bulkOf(id.String()), bulkOf(p.owner),
			fmt.Sprintf(":%d\r\n", idle.Milliseconds()), fmt.Sprintf(":%d\r\n", p.count)))
	}
	return array(out...)
}

func fakeMillis(s string) time.Duration {
	ms, _ := strconv.ParseInt(s, 10, 64)
	return time.Duration(ms) * time.Millisecond
}

func (f *fakeServer) xclaim(args []string) string {
	g, errText := f.group(args[1], args[2])
	if g == nil {
		return errText
	}
	owner, minIdle := args[3], fakeMillis(args[4])
	var ids []string
	idle, retry, justID := time.Duration(0), int64(-1), false
	for i := 5; i < len(args); i++ {
		switch strings.ToUpper(args[i]) {
		case "IDLE":
			i++
			idle = fakeMillis(args[i])
		case "RETRYCOUNT":
			i++
			retry, _ = strconv.ParseInt(args[i], 10, 64)
		case "JUSTID":
			justID = true
		default:
			ids = append(ids, args[i])
		}
	}
	var out []string
	for _, s := range ids {
		id := parseFakeID(s)
		p := g.pel[id]
		if p != nil && f.deleted(args[1], id) {
			delete(g.pel, id)
			continue
		}
		if p == nil || time.Since(p.at) < minIdle {
			continue
		}
		g.consumers[owner] = true
		p.owner, p.at = owner, time.Now().Add(-idle)
		f.note(id, strings.Join(args, " "), "")
		switch {
		case retry >= 0:
			p.count = retry
		case !justID:
			p.count++
		}
		if justID {
			out = append(out, bulkOf(s))
		} else {
			out = append(out, f.entry(id))
		}
	}
	return array(out...)
}

func (f *fakeServer) xautoclaim(args []string) string {
	g, errText := f.group(args[1], args[2])
	if g == nil {
		return errText
	}
	owner, minIdle, start, count := args[3], fakeMillis(args[4]), parseFakeID(args[5]), 100
	if len(args) > 7 {
		count, _ = strconv.Atoi(args[7])
	}
	attempts, cursor := count*10, "0-0"
	var out, gone []string
	for _, id := range g.sortedPEL() {
		if id.less(start) {
			continue
		}
		if attempts == 0 || len(out) == count {
			cursor = id.String()
			break
		}
		attempts--
		p := g.pel[id]
		if f.deleted(args[1], id) {
			gone = append(gone, bulkOf(id.String()))
			delete(g.pel, id)
			continue
		}
		if time.Since(p.at) < minIdle {
			continue
		}
		g.consumers[owner] = true
		p.owner, p.at = owner, time.Now()
		p.count++
		f.note(id, "autoclaimed", owner)
		out = append(out, f.entry(id))
	}
	return array(bulkOf(cursor), array(out...), array(gone...))
}

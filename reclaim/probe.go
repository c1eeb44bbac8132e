package reclaim

import (
	"strconv"
	"strings"
	"time"

	"streamproxy/internal/resp"
)

const (
	// sizeRounds is once in how many rounds the number of pending entries is asked
	// for.
	sizeRounds = 100
	// largePEL is from how many pending entries a probe, which walks over them, costs
	// the server too much.
	largePEL = 50_000
	// pageSize is how many pending entries of a large group are looked at per round.
	pageSize = 1000
)

// page is how far a group with very many pending entries has been read.
type page struct {
	entries int64
	from    string // "-" or "(" and the last id seen
}

// questions is one pipeline of a round: probes of the streams that one user may
// ask about, then, from time to time, the sizes of the same.
type questions struct {
	id       Identity
	streams  []int
	profiles []*profile // by question
	sizes    bool
	commands []byte
	n        int
}

// plan shares the streams out among users that may ask and have a connection. The
// lock is held.
func (e *Engine) plan(w *sweep, server time.Time) (list []*questions) {
	ids := make(map[User]Identity)
	for rs := range w.readers {
		if rs.live() {
			ids[rs.consumer.user] = rs.id
		}
	}
	by := make(map[User]*questions)
	for i, profiles := range w.profiles {
		for _, p := range profiles {
			id, ok := ids[p.target.user]
			if !ok {
				continue
			}
			q := by[id.User]
			if q == nil {
				q = &questions{id: id, sizes: w.led%sizeRounds == 0}
				by[id.User] = q
				list = append(list, q)
			}
			q.streams = append(q.streams, i)
			q.profiles = append(q.profiles, p)
			q.commands = w.appendQuestion(q.commands, i, server)
			q.n++
			break
		}
	}
	for _, q := range list {
		if q.sizes {
			for _, i := range q.streams {
				q.commands = resp.AppendCommand(q.commands, "XINFO", "GROUPS", w.streams[i])
				q.n++
			}
		}
	}
	return list
}

// appendQuestion asks about one stream: a probe, or one page of very many entries.
func (w *sweep) appendQuestion(dst []byte, i int, server time.Time) []byte {
	s := w.streams[i]
	if p := w.pages[i]; p != nil {
		return resp.AppendCommand(dst, "XPENDING", s, w.group, p.from, "+", strconv.Itoa(pageSize))
	}
	end := probeEnd(server, w.minIdle)
	if _, ok := w.watched[i]; ok {
		end = "+"
	}
	return appendProbe(dst, s, w.group, w.minIdle, end)
}

// read takes the replies to the questions into a report. The lock is held.
func (q *questions) read(e *Engine, w *sweep, r *report, replies [][]byte, t taken) {
	for k, i := range q.streams {
		raw := replies[k]
		list, ok := parsePending(raw)
		if !ok {
			e.refused(q.profiles[k].target.targetKey, errorCode(raw), time.Now())
			r.Skipped = append(r.Skipped, i)
			continue
		}
		if p := w.pages[i]; p != nil {
			list = p.turn(list, w.minIdle)
		}
		if len(list) > 0 {
			r.Hot = append(r.Hot, hotLine{Stream: i, ID: list[0].id, Owner: []byte(shown(list[0].owner)), Count: list[0].count})
		}
	}
	if !q.sizes {
		return
	}
	for k, i := range q.streams {
		w.sized(e, i, replies[len(q.streams)+k], t.server)
	}
}

// maxShown is how much of an owner's name a report has: it is there to be looked at, may have
// any length, and the report may not.
const maxShown = 256

func shown(owner string) string {
	if len(owner) <= maxShown {
		return owner
	}
	return strings.Clone(owner[:maxShown]) // not to keep the rest
}

// turn takes one page and returns what of it is reclaimable. The page is turned
// only when nothing is, so that a hit stays known until it has been claimed.
func (p *page) turn(list []pendingEntry, minIdle time.Duration) (found []pendingEntry) {
	for _, en := range list {
		if en.idle >= minIdle {
			found = append(found, en)
		}
	}
	switch {
	case len(found) > 0:
	case len(list) < pageSize:
		p.from = "-"
	default:
		p.from = "(" + list[len(list)-1].id
	}
	return found
}

// sized takes the reply to XINFO GROUPS: how much is pending, and whether entries
// come from the future, where a probe that ends at the present does not look.
func (w *sweep) sized(e *Engine, i int, raw []byte, server time.Time) {
	pending, last, ok := groupInfo(raw, w.group)
	if !ok {
		return
	}
	if ms, _, _ := strings.Cut(last, "-"); later(ms, server) {
		w.watch(i, time.Time{})
	} else if until, ok := w.watched[i]; ok && until.IsZero() {
		w.watch(i, time.Time{})
		w.watched[i] = server.Add(w.minIdle + w.interval)
	}
	old := w.pages[i]
	switch {
	case pending > largePEL:
		if old == nil {
			old = &page{from: "-"}
			if w.pages == nil {
				w.pages = make(map[int]*page)
			}
			w.pages[i] = old
		}
		old.entries = pending
		rounds := time.Duration(pending/pageSize + 1)
		e.cfg.Events.largePEL(w.streams[i], w.group, pending, rounds*w.interval)
	case old != nil:
		delete(w.pages, i)
		e.cfg.Events.largePEL(w.streams[i], w.group, 0, 0)
	}
}

// silencePages takes back what was reported of large groups, because from now on
// another proxy reads them, or none. How far they were read is kept. The lock is
// held.
func (e *Engine) silencePages(w *sweep) {
	for i := range w.pages {
		e.cfg.Events.largePEL(w.streams[i], w.group, 0, 0)
	}
}

// later reports whether an id's milliseconds are beyond a time of the server's.
func later(ms string, server time.Time) bool {
	n, err := strconv.ParseUint(ms, 10, 64)
	return err == nil && n > uint64(max(server.UnixMilli(), 0))
}

// groupInfo finds one group in the reply to XINFO GROUPS.
func groupInfo(raw []byte, group string) (pending int64, last string, ok bool) {
	v, _, err := resp.Parse(raw)
	if err != nil || v.Kind != '*' {
		return 0, "", false
	}
	for _, g := range v.Elems {
		fields := make(map[string]string)
		for i := 0; i+1 < len(g.Elems); i += 2 {
			fields[string(g.Elems[i].Text)] = string(g.Elems[i+1].Text)
		}
		if fields["name"] != group {
			continue
		}
		pending, err = strconv.ParseInt(fields["pending"], 10, 64)
		return pending, fields["last-delivered-id"], err == nil
	}
	return 0, "", false
}

package reclaim

import (
	"slices"
	"time"

	"streamproxy/internal/resp"
)

// entry is one claimed entry: its bytes as the server sent them, and what it was
// before the claim.
type entry struct {
	id  string // empty for the hole that a deleted entry leaves before 7.0
	raw []byte
	// was says whose it was; it is nil if the server did not tell, and then the entry
	// cannot be given back.
	was *pendingEntry
}

// batch is what one claim has brought for one consumer from one stream.
type batch struct {
	profile  *profile
	consumer *consumer
	id       Identity
	sent     time.Time // the claim was made no earlier
	at       time.Time // the claim's reply arrived
	fence    uint64    // of a batch that is held: what the fence said when the claim was sent
	asked    int       // the COUNT of the call for which it is held
	cursor   []byte
	entries  []entry
	deleted  []byte // nil before 7.0
	deletedN int
	size     int64
	trimmed  bool // some entries may have been deleted since, see trim.go
}

// newBatch takes the reply to an XAUTOCLAIM apart.
func newBatch(p *profile, c *consumer, id Identity, raw []byte, at time.Time) (*batch, bool) {
	parts, err := elements(raw)
	if err != nil || len(parts) < 2 || len(parts) > 3 {
		return nil, false
	}
	list, err := elements(parts[1])
	if err != nil {
		return nil, false
	}
	b := &batch{profile: p, consumer: c, id: id, at: at, cursor: parts[0], size: int64(len(raw))}
	for _, e := range list {
		b.entries = append(b.entries, entry{id: entryID(e), raw: e})
	}
	if len(parts) == 3 {
		b.deleted = parts[2]
		gone, err := elements(parts[2])
		if err != nil {
			return nil, false
		}
		b.deletedN = len(gone)
	}
	return b, true
}

// entryID is the id of a raw stream entry, empty for a hole.
func entryID(raw []byte) string {
	v, _, err := resp.Parse(raw)
	if err != nil || len(v.Elems) == 0 {
		return ""
	}
	return string(v.Elems[0].Text)
}

// know notes what the entries were before the claim.
func (b *batch) know(listed []pendingEntry) {
	at := make(map[string]*pendingEntry, len(listed))
	for i := range listed {
		at[listed[i].id] = &listed[i]
	}
	for i := range b.entries {
		b.entries[i].was = at[b.entries[i].id]
	}
}

// concerns reports whether anything in the batch is a consumer's, or was.
func (b *batch) concerns(consumer string) bool {
	return b.consumer.name == consumer || slices.ContainsFunc(b.entries, func(e entry) bool {
		return e.was != nil && e.was.owner == consumer
	})
}

// rest is the first entry that was listed and not claimed, nil if there is none.
func (b *batch) rest(listed []pendingEntry, now time.Time) *hit {
	got := make(map[string]bool, len(b.entries))
	for _, e := range b.entries {
		got[e.id] = true
	}
	if list, err := elements(b.deleted); err == nil {
		for _, id := range list {
			got[textOf(id)] = true
		}
	}
	for _, p := range listed {
		if !got[p.id] {
			return &hit{id: p.id, owner: shown(p.owner), count: p.count, at: now}
		}
	}
	return nil
}

// ids is how many entries there are, holes not counted.
func (b *batch) ids() (n int) {
	for _, e := range b.entries {
		if e.id != "" {
			n++
		}
	}
	return n
}

// reply writes the batch as the reply to the XAUTOCLAIM that it answers.
func (b *batch) reply() []byte {
	raws := make([][]byte, len(b.entries))
	for i, e := range b.entries {
		raws[i] = e.raw
	}
	return claimReply(b.cursor, raws, b.deleted)
}

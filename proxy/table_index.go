package proxy

// index finds an entry by a name in any case. It is a plain open-addressed
// table over names that never change, because a map would need the name in
// lower case first and a hash that resists attackers, and together that is
// most of what classifying a command costs. Clients only look names up here, so
// they cannot make it degenerate.
type index struct {
	slots []indexed // a power of two, at most a quarter of them in use
}

type indexed struct {
	name  string // in lower case
	entry *entry // nil: free
}

// newIndex enters every command.
func newIndex(commands map[string]*entry) index {
	size := 64
	for size < 4*len(commands) {
		size *= 2
	}
	ix := index{slots: make([]indexed, size)}
	for name, e := range commands {
		at := ix.start([]byte(name))
		for ix.slots[at].entry != nil {
			at = (at + 1) & (size - 1)
		}
		ix.slots[at] = indexed{name, e}
	}
	return ix
}

// find returns the entry of name, nil if there is none.
func (ix index) find(name []byte) *entry {
	if len(name) > maxNameLen {
		return nil
	}
	for at := ix.start(name); ; at = (at + 1) & (len(ix.slots) - 1) {
		s := &ix.slots[at]
		if s.entry == nil || equalLower(name, s.name) {
			return s.entry
		}
	}
}

// start hashes a name without regard to case.
func (ix index) start(name []byte) int {
	h := uint32(len(name))
	for _, b := range name {
		h = (h ^ uint32(b|0x20)) * 0x01000193
	}
	return int(h^h>>15) & (len(ix.slots) - 1)
}

// equalLower reports whether b in lower case is name. Letters of ASCII only,
// as on the server.
func equalLower(b []byte, name string) bool {
	if len(b) != len(name) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

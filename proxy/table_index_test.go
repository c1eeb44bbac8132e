package proxy

import (
	"strings"
	"testing"
)

// Every command is found in any case, and nothing else is.
func TestIndex(t *testing.T) {
	table := DefaultTable()
	for name, e := range table.commands {
		for _, spelling := range []string{name, asciiUpper(name), strings.ToUpper(name[:1]) + name[1:]} {
			if table.index.find([]byte(spelling)) != e {
				t.Errorf("%s is not found", spelling)
			}
		}
		for _, other := range []string{name + "x", name[1:], "x" + name, name + "\x00"} {
			if got := table.index.find([]byte(other)); got != table.commands[other] {
				t.Errorf("%q is found", other)
			}
		}
		// The hash takes these for the same name; the comparison must not.
		if other := []byte(strings.Replace(name, "-", "\r", 1)); string(other) != name && table.index.find(other) != nil {
			t.Errorf("%q is found", other)
		}
	}
	for _, name := range []string{"", " ", "get ", "GET\r", strings.Repeat("a", maxNameLen), strings.Repeat("a", maxNameLen+1), "\xff\xfe"} {
		if table.index.find([]byte(name)) != nil {
			t.Errorf("%q is found", name)
		}
	}
}

// Most lookups should meet their name first: a poor hash would show here.
func TestIndexProbesLittle(t *testing.T) {
	table, probes := DefaultTable(), 0
	size := len(table.index.slots)
	for name := range table.commands {
		at := table.index.start([]byte(name))
		for probes++; table.index.slots[at].name != name; probes++ {
			at = (at + 1) & (size - 1)
		}
	}
	if mean := float64(probes) / float64(len(table.commands)); mean > 1.3 {
		t.Errorf("%.2f probes on average", mean)
	}
}

package batcher

import "testing"

// Who has been found by one is not taken for found by another, nor by one that has no
// name to tell it by.
func TestFound(t *testing.T) {
	named := func(name string) *Conn { return &Conn{opts: Options{Name: name}} }
	c, first, second, nameless := named("c"), named("1"), named("2"), named("")
	if c.FoundBy(first) || c.FoundBy(nameless) {
		t.Error("found by nobody")
	}
	c.Found(first)
	if !c.FoundBy(first) || c.FoundBy(second) {
		t.Error("found by the first")
	}
	c.Found(nameless)
	if c.FoundBy(first) || c.FoundBy(nameless) || c.FoundBy(named("")) {
		t.Error("found by one that looks like others")
	}
}

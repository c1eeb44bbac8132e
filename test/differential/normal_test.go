package differential

import (
	"strings"
	"testing"
)

func TestNormal(t *testing.T) {
	tests := []struct {
		leeway leeway
		a, b   string
		equal  bool
	}{
		{exact, ":1\r\n", ":2\r\n", false},
		{numbers, ":1\r\n", ":22\r\n", true},
		{numbers, ":-1\r\n", ":1\r\n", false},
		{numbers, "$2\r\n10\r\n", "$1\r\n7\r\n", true},
		{numbers, "$1\r\na\r\n", "$1\r\nb\r\n", false},
		{numbers, "$-1\r\n", "$1\r\n7\r\n", false},
		{numbers, "*1\r\n:1\r\n", "*2\r\n:1\r\n:1\r\n", false},
		{order, "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:1\r\n", true},
		{order, "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:2\r\n", false},
		{content, "$1\r\na\r\n", "$3\r\nabc\r\n", true},
		{content, "$1\r\na\r\n", "$-1\r\n", false},
		{content, "$1\r\na\r\n", "+a\r\n", false},
		{content, "-ERR a\r\n", "-ERR b\r\n", false},
		{names | content, "$-1\r\n", "$13\r\nstreamproxy:x\r\n", true},
		{names | content, "$-1\r\n", "$1\r\na\r\n", false},
		{order | numbers, "-ERR a\r\n", "-ERR b\r\n", false},
	}
	for _, tt := range tests {
		if got := normal(tt.a, tt.leeway) == normal(tt.b, tt.leeway); got != tt.equal {
			t.Errorf("leeway %b: %q and %q: equal %v, want %v", tt.leeway, tt.a, tt.b, got, tt.equal)
		}
	}
}

func TestAllowancesSayWhy(t *testing.T) {
	for _, a := range allowances {
		if a.why == "" || a.leeway == exact || a.commands == "" || a.commands != strings.ToLower(a.commands) {
			t.Errorf("allowance %q is incomplete", a.commands)
		}
	}
	if leewayOf([]string{"Client", "ID"}) != numbers || leewayOf([]string{"GET", "id"}) != exact {
		t.Error("an allowance is found for the wrong command")
	}
}

package top

import (
	"strings"
	"testing"
)

var someRows = []row{
	{name: "commands", cells: []string{"4883/s", "blocking 12/s", "shared 4871/s"}},
	{name: "state", cells: []string{"upstream is not ready: \x1b[2J\u00e9"}, bad: true},
}

// Nothing is wider than the terminal, and nothing is left out but what has no room on a line of its own.
func TestLinesFitTheTerminal(t *testing.T) {
	for width := range 100 {
		list := lines(someRows, width, false)
		for _, l := range list {
			if len(l) > width {
				t.Errorf("width %d: %q", width, l)
			}
		}
		if width >= 25 && !strings.Contains(strings.Join(list, "\n"), "shared 4871/s") {
			t.Errorf("width %d: a cell is missing in %q", width, list)
		}
	}
	if got := lines(someRows, 30, false); got[0] != "commands  4883/s" && got[0] != "commands  4883/s  blocking 12/s" {
		t.Errorf("%q", got)
	}
}

// What comes from the server cannot tell the terminal anything.
func TestLinesAreHarmless(t *testing.T) {
	if got := strings.Join(lines(someRows, 80, false), "\n"); strings.Contains(got, "\x1b") || !strings.Contains(got, "?[2J?") {
		t.Errorf("%q", got)
	}
}

func TestColours(t *testing.T) {
	list := lines(someRows, 80, true)
	if !strings.Contains(list[1], red) || strings.Contains(list[0], red) || !strings.HasPrefix(list[0], dim+"commands  "+plain) {
		t.Errorf("%q", list)
	}
}

// A frame is drawn over the one before, erases the rest of each line and of the screen, and is no
// longer than the terminal.
func TestFrame(t *testing.T) {
	if got, want := frame([]string{"a", "b", "c"}, 2), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := frame([]string{"a"}, 0); !strings.Contains(got, "a") {
		t.Errorf("%q", got)
	}
}

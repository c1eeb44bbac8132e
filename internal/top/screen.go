package top

import (
	"strings"
)

const (
	nameWidth = 10 // of the headings, with the blank behind
	wide      = 1 << 16
)

// What a terminal is told. Lines are drawn over the old ones and only their rest is
// erased, and all of it is one write: that does not flicker.
const (
	enter    = "\x1b[?1049h\x1b[?25l" // a screen of our own, without cursor
	leave    = "\x1b[?25h\x1b[?1049l"
	home     = "\x1b[H"
	restLine = "\x1b[K"
	restAll  = "\x1b[J"
	dim      = "\x1b[2m"
	red      = "\x1b[31m"
	plain    = "\x1b[0m"
)

// lines lays rows out for a width: what does not fit goes on below.
func lines(rows []row, width int, colour bool) []string {
	var list []string
	for _, r := range rows {
		for i, text := range wrap(r.cells, width-nameWidth) {
			name := ""
			if i == 0 {
				name = r.name
			}
			list = append(list, oneLine(name, text, width, colour, r.bad))
		}
	}
	return list
}

// wrap joins cells to lines of at most width, two blanks apart. There is at least one.
func wrap(cells []string, width int) []string {
	if len(cells) == 0 {
		return []string{"-"}
	}
	list := []string{""}
	for _, c := range cells {
		last := &list[len(list)-1]
		switch {
		case *last == "":
			*last = c
		case len(*last)+2+len(c) <= width:
			*last += "  " + c
		default:
			list = append(list, c)
		}
	}
	return list
}

// oneLine is a heading and a text, cut where the terminal ends.
func oneLine(name, text string, width int, colour, bad bool) string {
	name += strings.Repeat(" ", max(nameWidth-len(name), 0))
	name = name[:min(len(name), max(width, 0))]
	text = printable(text)
	text = text[:min(len(text), max(width-len(name), 0))]
	switch {
	case !colour:
		return strings.TrimRight(name+text, " ")
	case bad:
		text = red + text + plain
	}
	return dim + name + plain + text
}

// printable takes out what a terminal might obey: some words come from the server.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// frame is what is written to show lines in place of those before.
func frame(list []string, height int) string {
	list = list[:min(len(list), max(height, 1))]
	return home + strings.Join(list, restLine+"\r\n") + restLine + restAll
}

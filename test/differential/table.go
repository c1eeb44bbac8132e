package differential

import (
	_ "embed" // for the table
	"strings"
)

// section is a part of the table: lines in the inline form, played in order from an empty server.
type section struct {
	name  string
	lines []string
}

//go:embed testdata/table.txt
var tableText string

// table is every type of command and reply that a random script might miss. What only differs in
// size stands in TestSizes.
var table = readTable(tableText)

// readTable splits the text at its headings.
func readTable(text string) []section {
	var all []section
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "== "); ok {
			all = append(all, section{name: name})
			continue
		}
		last := &all[len(all)-1]
		last.lines = append(last.lines, line)
	}
	return all
}

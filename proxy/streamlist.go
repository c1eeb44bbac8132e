package proxy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"streamproxy/reclaim"
)

const (
	// maxStreamLines bounds PROXY STREAMS: more is read by nobody.
	maxStreamLines = 1000
	// maxShownName bounds the bytes of a name in it, as a long one widens all lines, and
	// of a client's in PROXY CLIENTS.
	maxShownName = 64
)

// streamsText is PROXY STREAMS: what reclaim knows, as a table for people.
func (p *Proxy) streamsText() string {
	if p.streams == nil {
		return "# reclaim is off\r\n"
	}
	return formatStreams(p.cfg.Reclaim.Mode, p.streams.Streams())
}

// formatStreams writes one line for each stream, group, user and min-idle: those that
// want attention first.
func formatStreams(mode reclaim.Mode, list []reclaim.StreamInfo) string {
	counts := map[string]int{}
	held := 0
	for _, i := range list {
		counts[i.State]++
		held += i.Held
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# reclaim %s: %d streams, %d hot, %d cold, %d unknown; %d entries held\n",
		mode, len(list), counts["hot"], counts["cold"], counts["unknown"], held)
	rank := func(i reclaim.StreamInfo) int { return slices.Index([]string{"hot", "unknown", "cold"}, i.State) }
	slices.SortStableFunc(list, func(x, y reclaim.StreamInfo) int { return cmp.Compare(rank(x), rank(y)) })
	more := max(len(list)-maxStreamLines, 0)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(list) > 0 {
		fmt.Fprint(w, "state\tage\tdb\tuser\tgroup\tstream\tmin-idle\tconsumers\theld\tlease\tfirst\towner\tforwarded because\n")
	}
	for _, i := range list[:len(list)-more] {
		fmt.Fprintln(w, strings.Join(streamCells(i), "\t"))
	}
	_ = w.Flush() // into memory
	if more > 0 {
		fmt.Fprintf(&b, "# and %d more\n", more)
	}
	return strings.ReplaceAll(b.String(), "\n", "\r\n")
}

// streamCells is one line. A dash stands for nothing.
func streamCells(i reclaim.StreamInfo) []string {
	age, first, owner, lease, why := "-", "-", "-", "-", "-"
	if i.Age >= 0 {
		age = i.Age.Round(100 * time.Millisecond).String()
	}
	if i.FirstID != "" {
		first, owner = i.FirstID, shownName(i.FirstOwner)
	}
	if i.Leading {
		lease = "ours"
	}
	if i.Why != "" {
		why = i.Why
	}
	user := "-"
	if i.User != "" {
		user = shownName(i.User)
	}
	return []string{
		i.State, age, strconv.Itoa(i.DB), user, shownName(i.Group), shownName(i.Stream), i.MinIdle.String(),
		strconv.Itoa(i.Consumers), strconv.Itoa(i.Held), lease, first, owner, why,
	}
}

// shownName writes a name so that it is one cell on one line, whatever its bytes.
func shownName(name string) string {
	if len(name) > maxShownName {
		name = strings.ToValidUTF8(name[:maxShownName], "") + "..."
	}
	quoted := strconv.Quote(name)
	if name == "" || name == "-" || quoted != `"`+name+`"` || strings.ContainsRune(name, ' ') {
		return quoted
	}
	return name
}

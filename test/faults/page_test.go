//go:build faults

package faults

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	pagePath    = "../../docs/reliability.md"
	resultsPath = "results/runs.jsonl"
)

//go:embed testdata/page.md
var pageText string

// promises are what ledgers look after, in the order of the page.
var promises = []string{"P1", "P2", "P3", "P6", "P8", "closed", "hang", "race"}

// TestPage compares docs/reliability.md with what the recorded runs say. WRITE_PAGE=1 writes it.
func TestPage(t *testing.T) {
	page, err := writePage()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("WRITE_PAGE") != "" {
		if err := os.WriteFile(pagePath, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(pagePath)
	if err != nil || !bytes.Equal(written, page) {
		t.Errorf("docs/reliability.md does not say what %s says (%v); WRITE_PAGE=1 go test -tags faults ./test/faults -run TestPage", resultsPath, err)
	}
}

// writePage fills the tables into the page's text.
func writePage() ([]byte, error) {
	runs, err := readFindings(resultsPath)
	if err != nil {
		return nil, err
	}
	page := strings.NewReplacer(
		"{{totals}}", totals(runs),
		"{{faults}}", faultTable(runs),
		"{{verdicts}}", sumTable(runs, "outcome", func(f finding) map[string]int64 { return f.Verdicts }),
		"{{kinds}}", sumTable(runs, "client", func(f finding) map[string]int64 { return f.Kinds }),
		"{{soaks}}", soakTable(runs),
	).Replace(pageText)
	return []byte(page), nil
}

func readFindings(path string) (runs []finding, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var f finding
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return nil, err
		}
		runs = append(runs, f)
	}
	return runs, lines.Err()
}

// totals is one row for each kind of run of each revision, one for all, and one for those since the last violation.
func totals(runs []finding) string {
	var b strings.Builder
	b.WriteString("| revision | server | way to it | proxy | runs | commands | faults |")
	for _, p := range promises {
		fmt.Fprintf(&b, " %s |", p)
	}
	fmt.Fprintf(&b, "\n|---|---|---|---|---:|---:|---:|%s\n", strings.Repeat("---:|", len(promises)))
	var revisions []string // the oldest run's first
	groups := make(map[string]map[string][]finding)
	for _, f := range runs {
		if groups[f.Revision] == nil {
			groups[f.Revision] = make(map[string][]finding)
			revisions = append(revisions, f.Revision)
		}
		groups[f.Revision][f.set()] = append(groups[f.Revision][f.set()], f)
	}
	for _, r := range revisions {
		for _, set := range slices.Sorted(maps.Keys(groups[r])) {
			b.WriteString(totalsRow(r+" | "+set, groups[r][set]))
		}
	}
	b.WriteString(totalsRow("**all** | | | ", runs))
	return b.String() + strings.TrimSuffix(totalsRow("**since the last violation** | | | ", sinceViolation(runs)), "\n")
}

// sinceViolation is the runs after the last in which any promise was broken.
func sinceViolation(runs []finding) []finding {
	for i := len(runs) - 1; i >= 0; i-- {
		if len(runs[i].Violations) > 0 {
			return runs[i+1:]
		}
	}
	return runs
}

// set describes the set-up of a run in the first columns of its row.
func (f *finding) set() string {
	server, way, proxy := "loses its data when killed", "plain", "as shipped"
	if f.Durable {
		server = "keeps its data"
	}
	switch {
	case f.Secure:
		way = "TLS"
	case f.Apart:
		way = "a network that loses packets"
	}
	if f.Race {
		proxy = "with race detector"
	}
	if f.Soak != nil {
		proxy += ", soak"
	}
	return server + " | " + way + " | " + proxy
}

func totalsRow(set string, runs []finding) string {
	var commands, times int64
	broken := make(map[string]int)
	for _, f := range runs {
		commands += f.Commands
		for _, i := range f.Faults {
			times += i.Times
		}
		for p, n := range f.Violations {
			broken[p] += n
		}
	}
	row := fmt.Sprintf("| %s | %d | %s | %s |", set, len(runs), thousands(commands), thousands(times))
	for _, p := range promises {
		row += fmt.Sprintf(" %d |", broken[p])
	}
	return row + "\n"
}

// faultTable has a row for each fault that there is, also if no run had it.
func faultTable(runs []finding) string {
	var b strings.Builder
	b.WriteString("| fault | runs | times | commands of these runs | of them while it lasted | violations in these runs |\n|---|---:|---:|---:|---:|---:|\n")
	for _, fault := range faults {
		var in, times, commands, meanwhile, broken int64
		for _, f := range runs {
			if i := f.Faults[fault.name]; i.Times > 0 {
				in++
				times += i.Times
				commands += f.Commands
				meanwhile += i.Commands
				for _, n := range f.Violations {
					broken += int64(n)
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s | %d |\n", fault.name, in, times, thousands(commands), thousands(meanwhile), broken)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// sumTable adds up one map over all runs.
func sumTable(runs []finding, what string, of func(finding) map[string]int64) string {
	sums := make(map[string]int64)
	for _, f := range runs {
		for name, n := range of(f) {
			sums[name] += n
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | commands |\n|---|---:|\n", what)
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, thousands(sums[name]))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// soakTable has two rows for each soak.
func soakTable(runs []finding) string {
	var b strings.Builder
	b.WriteString("| revision | seed | faults over | at rest | clients | goroutines | descriptors | upstream | heap MB | RSS MB |\n|---|---:|---:|---|---:|---:|---:|---:|---:|---:|\n")
	mb := func(n int64) float64 { return float64(n) / (1 << 20) }
	var memory strings.Builder
	for _, f := range runs {
		if f.Soak == nil {
			continue
		}
		for _, row := range []struct {
			when string
			l    level
		}{{"after the warm-up", f.Soak.Before}, {"after the faults", f.Soak.After}} {
			fmt.Fprintf(&b, "| %s | %d | %.0f s | %s | %d | %d | %d | %d | %.1f | %.0f |\n", f.Revision, f.Seed, f.Soak.Seconds, row.when, row.l.Clients,
				row.l.Goroutines, row.l.Descriptors, row.l.Upstream, mb(row.l.Heap), mb(row.l.RSS))
		}
		fmt.Fprintf(&memory, "\nSeed %d at %s: RSS %.0f MB on average over the first minute of faults, %.0f MB over the last (%.2f times), %.0f MB at most.\n",
			f.Seed, f.Revision, mb(f.Soak.FirstRSS), mb(f.Soak.LastRSS), float64(f.Soak.LastRSS)/float64(f.Soak.FirstRSS), mb(f.Soak.PeakRSS))
	}
	return b.String() + strings.TrimSuffix(memory.String(), "\n")
}

// thousands groups digits.
func thousands(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

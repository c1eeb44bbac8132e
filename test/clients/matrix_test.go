package clients

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

const (
	committed = "testdata/matrix.json"
	page      = "../../docs/compatibility.md"
	opening   = "<!-- matrix: written by test/clients, see its doc.go -->\n"
	closing   = "<!-- end of matrix -->\n"
)

// The committed matrix has every server, client and feature that is declared, and the page shows it.
func TestPageShowsTheMatrix(t *testing.T) {
	text, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	m := &Matrix{}
	if err := json.Unmarshal(text, m); err != nil {
		t.Fatal(err)
	}
	for _, fault := range m.Faults() {
		t.Error(fault)
	}
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if want := withTable(t, string(doc), m); string(doc) != want {
		t.Errorf("%s does not show %s; run the clients stage with WRITE_MATRIX=1", page, committed)
	}
}

// withTable puts the matrix's table into the page.
func withTable(t *testing.T, doc string, m *Matrix) string {
	t.Helper()
	before, rest, found := strings.Cut(doc, opening)
	_, after, closed := strings.Cut(rest, closing)
	if !found || !closed {
		t.Fatalf("%s has no place for the matrix", page)
	}
	return before + opening + "\n" + m.Table() + "\n" + closing + after
}

func TestMatrixBooksTheWorst(t *testing.T) {
	m := &Matrix{Results: map[string]map[string]map[string]bool{}}
	for _, c := range []struct {
		check  string
		passed bool
	}{{"strings resp2", true}, {"strings resp3", false}, {"large_value resp2", true}, {"cached_script resp3", true}} {
		m.Add("valkey", "jedis", c.check, c.passed)
	}
	if got := m.Results["valkey"]["jedis"]; len(got) != 2 || got["strings"] || !got["script"] {
		t.Errorf("booked %v", got)
	}
	if len(m.Faults()) < 4 {
		t.Errorf("only these faults in a matrix of one client: %q", m.Faults())
	}
	if table := m.Table(); !strings.Contains(table, "| jedis | strings | | | **no** |\n") {
		t.Errorf("no row for a failure:\n%s", table)
	}
}

package clients

import (
	"encoding/json"
	"os"
	"slices"
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
	m := readMatrix(t)
	for _, fault := range m.Faults() {
		t.Error(fault)
	}
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if want := withTables(t, string(doc), m); string(doc) != want {
		t.Errorf("%s does not show %s; run the clients stage with WRITE_MATRIX=1", page, committed)
	}
}

func readMatrix(t *testing.T) *Matrix {
	t.Helper()
	text, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMatrix()
	if err := json.Unmarshal(text, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// withTables puts the matrix's tables into the page.
func withTables(t *testing.T, doc string, m *Matrix) string {
	t.Helper()
	before, rest, found := strings.Cut(doc, opening)
	_, after, closed := strings.Cut(rest, closing)
	if !found || !closed {
		t.Fatalf("%s has no place for the matrix", page)
	}
	return before + opening + "\n" + m.Tables() + "\n" + closing + after
}

func TestMatrixBooksTheWorst(t *testing.T) {
	m := NewMatrix()
	m.Servers["valkey"] = "Valkey 1"
	m.Clients["jedis"] = "8"
	for _, c := range []struct {
		check  string
		passed bool
	}{{"strings resp2", true}, {"strings resp3", false}, {"large_value resp2", true}, {"cached_script resp3", true}} {
		m.Add("valkey", "jedis", c.check, c.passed)
	}
	m.Add("valkey", "redis-cli", "scan", true)
	if got := m.Results["valkey"]["jedis"]; len(got) != 2 || got["strings"] || !got["script"] {
		t.Errorf("booked %v", got)
	}
	tables := m.Tables()
	for _, want := range []string{"| jedis (8) | | **no**: Valkey 1 | |", " Valkey 1 | |", "| redis-cli (): scan | **no** | **no** | yes |\n"} {
		if !strings.Contains(tables, want) {
			t.Errorf("no %q in\n%s", want, tables)
		}
	}
}

// A run of a part replaces that part, whole, and nothing else.
func TestMatrixMerges(t *testing.T) {
	m, run := NewMatrix(), NewMatrix()
	m.Add("valkey", "jedis", "streams", true)
	m.Add("valkey", "lettuce", "streams", true)
	m.Add("valkey", "of old", "streams", true)
	run.Add("valkey", "jedis", "strings", true)
	run.Clients["jedis"] = "9"
	m.Merge(run)
	got := m.Results["valkey"]
	if len(got) != 2 || len(got["jedis"]) != 1 || !got["jedis"]["strings"] || !got["lettuce"]["streams"] || m.Clients["jedis"] != "9" {
		t.Errorf("merged: %v, %v", got, m.Clients)
	}
}

func TestMatrixFindsGaps(t *testing.T) {
	m := NewMatrix()
	for _, server := range Servers {
		m.Servers[server] = server
		for _, client := range append(slices.Clone(Libraries), Tools...) {
			m.Clients[client] = "1"
			for _, feature := range Required {
				m.Add(server, client, feature, true)
			}
			if !slices.Contains(uncached, client) {
				m.Add(server, client, "caching", true)
			}
		}
	}
	if faults := m.Faults(); len(faults) != 0 {
		t.Fatalf("a whole matrix has faults: %q", faults)
	}
	delete(m.Results["valkey"]["lettuce"], "streams")
	delete(m.Clients, "jedis")
	m.Add("valkey", "ioredis", "caching", true)
	m.Add("valkey", "ioredis", "magic", true)
	if faults := m.Faults(); len(faults) != 4 {
		t.Errorf("found %q, want four faults", faults)
	}
}

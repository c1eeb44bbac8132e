//go:build clients

package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// found is what this run has seen so far, and running the server that it is with.
var (
	found   = &Matrix{Servers: map[string]string{}, Results: map[string]map[string]map[string]bool{}}
	running string
)

// check runs one check of a client as a subtest and books it.
func check(t *testing.T, client, name string, f func(t *testing.T)) {
	t.Helper()
	ok := t.Run(name, f)
	found.Add(running, client, name, ok)
}

// began notes which server the following checks are run with.
func began(name string, server *redistest.Server) {
	running = name
	found.Servers[name] = versionOf(server)
}

// versionOf is a server's own name and version.
func versionOf(s *redistest.Server) string {
	if strings.Contains(s.Do("INFO", "server"), "\nvalkey_version:") {
		return "Valkey " + s.Info("server", "valkey_version")
	}
	return "Redis " + s.Info("server", "redis_version")
}

// finish holds the run against what is declared, and writes it down if that is wanted.
func finish(t *testing.T) {
	t.Helper()
	if len(found.Results) < len(Servers) {
		t.Log("only a part of the matrix was run: nothing to compare")
		return
	}
	for _, fault := range found.Faults() {
		t.Error(fault)
	}
	if os.Getenv("WRITE_MATRIX") != "1" || t.Failed() {
		return
	}
	text, err := json.MarshalIndent(found, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(committed), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{committed: append(text, '\n'), page: []byte(withTable(t, string(doc), found))} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDirectModulesAreDeclared keeps go.mod's two kinds apart: what a file imports is a decision of
// ours, what is marked indirect is one of theirs. `go mod tidy` writes it so; this holds it without
// asking anybody for a module.
func TestDirectModulesAreDeclared(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	imported := map[string]string{}
	for _, s := range sources(t) {
		for _, path := range s.imports() {
			imported[path] = s.path
		}
	}
	declared := requirements(string(text))
	if len(declared) < 5 {
		t.Fatalf("go.mod requires only %v", declared)
	}
	for module, indirect := range declared {
		by := importer(imported, module)
		switch {
		case indirect && by != "":
			t.Errorf("%s imports %s, which go.mod marks as indirect: run go mod tidy", by, module)
		case !indirect && by == "":
			t.Errorf("nothing imports %s, which go.mod requires: run go mod tidy", module)
		}
	}
}

// requirements maps the modules of a go.mod to whether they are marked as indirect.
func requirements(text string) map[string]bool {
	modules := map[string]bool{}
	for line := range strings.Lines(text) {
		line, indirect := strings.CutSuffix(strings.TrimSpace(line), "// indirect")
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) == 2 && strings.HasPrefix(fields[1], "v") {
			modules[fields[0]] = indirect
		}
	}
	return modules
}

// importer is a file that imports a package of the module, or "".
func importer(imported map[string]string, module string) string {
	for path, file := range imported {
		if path == module || strings.HasPrefix(path, module+"/") {
			return file
		}
	}
	return ""
}

func TestRequirements(t *testing.T) {
	got := requirements("module m\n\ngo 1.26.0\n\nrequire a.b/c v1.2.3\nrequire (\n\td.e/f v0.1.0 // indirect\n\tg.h/i/v2 v2.0.0\n)\n")
	if len(got) != 3 || got["a.b/c"] || !got["d.e/f"] || got["g.h/i/v2"] {
		t.Errorf("got %v", got)
	}
}

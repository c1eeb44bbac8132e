package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages is every page for readers by its path from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"README.md": readFile(t, "README.md")}
	entries, err := os.ReadDir(root + "docs")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".md" {
			path := "docs/" + e.Name()
			all[path] = readFile(t, path)
		}
	}
	return all
}

// Flags that pages and alert rules name exist.
func TestFlagsInPages(t *testing.T) {
	known := readFile(t, "docs/flags.md")
	// Those of other programs and of subcommands.
	foreign := []string{"--build", "--profile", "--duration", "--dial", "--tls", "--cacert", "--cert", "--key", "--raw", "--out", "--url", "--for", "--timeout", "--interval"}
	found := 0
	all := pages(t)
	delete(all, "docs/benchmarks.md") // it quotes the command lines of other programs
	all["deploy/prometheus/rules.yml"] = readFile(t, "deploy/prometheus/rules.yml")
	for path, text := range all {
		for _, m := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(text, -1) {
			found++
			if !strings.Contains(known, "`"+m+"`") && !slices.Contains(foreign, m) {
				t.Errorf("%s: %s is no flag", path, m)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d flags were found", found)
	}
}

// Metrics that pages name exist.
func TestMetricsInPages(t *testing.T) {
	all := metricsOf(t)
	for path, text := range pages(t) {
		for _, name := range regexp.MustCompile(`\bstreamproxy_[a-z_]+`).FindAllString(text, -1) {
			if _, ok := all[name]; !ok {
				t.Errorf("%s: there is no metric %s", path, name)
			}
		}
	}
}

// Links between pages lead somewhere.
func TestLinksInPages(t *testing.T) {
	found := 0
	for path, text := range pages(t) {
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s leads to %s, which is not there", path, m[1])
			}
		}
	}
	if found == 0 {
		t.Error("no link was found")
	}
}

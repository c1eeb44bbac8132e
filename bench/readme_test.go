package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The first page shows what was measured: its figures are those of the committed results.
func TestReadmeShowsTheResults(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := figures("results")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(want, "\n| 1 caller |") + strings.Count(want, "\n| 1.2.4, redis-py 8 |"); n != 2 {
		t.Errorf("rows are missing:\n%s", want)
	}
	if !strings.Contains(string(page), figuresBegin+want+figuresEnd) {
		t.Errorf("the README is stale: run `go run ./bench report`; want\n%s", want)
	}
}

func TestWriteFigures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	for text, want := range map[string]string{
		"a\n" + figuresBegin + "old\n" + figuresEnd + "z\n": "",
		"a\n" + figuresBegin + "no end\n":                   "no place",
		"nothing":                                           "no place",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := writeFigures(path, "results")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil {
			continue
		}
		page, _ := os.ReadFile(path)
		if got := string(page); strings.Contains(got, "old") || !strings.HasPrefix(got, "a\n"+figuresBegin) || !strings.HasSuffix(got, figuresEnd+"z\n") || !strings.Contains(got, "| 50 callers |") {
			t.Errorf("the page became\n%s", got)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"streamproxy/bench/internal/result"
)

func TestReportPage(t *testing.T) {
	folder := t.TempDir()
	r := compared("throughput", result.Cell{Command: "GET", Callers: 50, Pipeline: 1},
		map[string]result.Sample{"direct": {Ops: 100, RedisCPU: 8}, "streamproxy": {Ops: 99, RedisCPU: 1, ProxyCPU: 7}})
	if _, err := r.Save(folder); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report(t.Context(), []string{"--results", folder, "--docs", folder, "--readme", ""}, &out); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(folder, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## Throughput", "**GET C=50 P=1**", "| S3 |", "pictures/throughput-ops.svg"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q on the page", want)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "pictures", "throughput-ops.svg")); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "no results of idle") {
		t.Errorf("the missing benchmark is not named: %s", out.String())
	}
}

func TestReportWithoutResults(t *testing.T) {
	var out strings.Builder
	if err := report(t.Context(), []string{"--results", t.TempDir(), "--docs", t.TempDir()}, &out); err == nil {
		t.Error("a page was written from nothing")
	}
}

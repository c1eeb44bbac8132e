package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// golangciLintVersion is the linter that runs, built once from its module into .cache/bin. It
// is not a `tool` line of go.mod: its two hundred modules would then constrain the proxy's own.
const golangciLintVersion = "v2.15.0"

// allTags names every build tag that hides a test, so that linters see those too.
const allTags = "clients,cases,streams,operations,faults"

// golangciLint returns the path of the pinned linter, which it builds if it is not there yet
// (about a minute on two cores).
func golangciLint(ctx context.Context, j *job) (string, error) {
	folder, err := filepath.Abs(filepath.Join(".cache", "bin", "golangci-lint-"+golangciLintVersion))
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "golangci-lint")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	env := []string{"GOBIN=" + folder, "CGO_ENABLED=0", "GOFLAGS="}
	return path, j.execEnv(ctx, env, "go", "install",
		"github.com/golangci/golangci-lint/v2/cmd/golangci-lint@"+golangciLintVersion)
}

// goFolders lists the top folders that hold Go files; .cache holds other people's.
func goFolders() []string {
	var folders []string
	entries, err := os.ReadDir(".")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			folders = append(folders, e.Name())
		}
	}
	return folders
}

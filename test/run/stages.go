package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// stage is one step of a test run.
type stage struct {
	name  string
	what  string // one line for the reader of the log
	quick bool   // part of `make check`
	run   func(context.Context, *job) error
}

// stages is the whole test run, in order.
var stages = []stage{
	{"install", "what tests need and this machine lacks", true, install},
	{"lint", "gofmt, go vet, golangci-lint", true, lint},
	{"build", "every package, and the binary for each platform", true, build},
	{"unit", "every package's tests with the race detector", true, unit},
	{"fuzz", "each fuzz target for a short time", false, fuzz},
	{"cases", "what has failed in the field, with the race detector", false, tagged("cases", "-race")},
	{"streams", "abandoned stream entries reach the living, with the race detector", false, tagged("streams", "-race", "-parallel", "8")},
	{"operations", "the binary under drains, restarts and hangs, alone and in fleets", false, tagged("operations", "-race")},
	{"faults", "everything breaks under load and nothing is lost, with the race detector", false, tagged("faults", "-race")},
	{"clients", "real client libraries through the proxy", false, tagged("clients")},
	{"docs", "generated pages are up to date", false, docs},
}

// errNothing is returned by a stage that found nothing to do.
var errNothing = errors.New("nothing to do")

func install(ctx context.Context, j *job) error {
	if err := j.exec(ctx, "bash", "test/install/apt.sh", "redis-server:redis-server", "redis-cli:redis-tools"); err != nil {
		return err
	}
	if j.quick {
		return nil
	}
	// The client libraries' languages; pip, npm and Maven fetch the libraries themselves.
	if err := j.exec(ctx, "bash", "test/install/apt.sh", "redis-benchmark:redis-tools",
		"node:nodejs", "npm:npm", "javac:default-jdk-headless", "mvn:maven",
		"php:php-cli", "php-redis", "ruby:ruby", "ruby-redis"); err != nil {
		return err
	}
	return j.exec(ctx, "bash", "test/install/servers.sh")
}

// lint runs every linter even if an earlier one complained: all faults at once.
func lint(ctx context.Context, j *job) error {
	var faults []error
	unformatted, err := j.output(ctx, "gofmt", append([]string{"-l"}, goFolders()...)...)
	if err == nil && unformatted != "" {
		err = fmt.Errorf("not formatted, run gofmt -w:\n%s", unformatted)
	}
	faults = append(faults, err, j.exec(ctx, "go", "vet", "-tags", allTags, "./..."), advisories(ctx, j))
	linter, err := golangciLint(ctx, j)
	if err != nil {
		return errors.Join(append(faults, err)...)
	}
	return errors.Join(append(faults, j.exec(ctx, linter, "run", "--build-tags", allTags, "./..."))...)
}

func build(ctx context.Context, j *job) error {
	if err := j.exec(ctx, "go", "build", "./..."); err != nil {
		return err
	}
	if _, err := os.Stat("cmd/streamproxy"); err != nil {
		return errors.New("cmd/streamproxy is missing")
	}
	// The binary must stay static and portable; the other packages are Linux tools.
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64"} {
		goos, goarch, _ := strings.Cut(platform, "/")
		env := []string{"CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + goarch}
		if err := j.execEnv(ctx, env, "go", "build", "-o", os.DevNull, "./cmd/streamproxy"); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
	}
	return nil
}

func unit(ctx context.Context, j *job) error {
	args := []string{"-race", "-timeout", "8m"}
	if j.quick {
		args = append(args, "-short")
	}
	return j.goTest(ctx, append(args, "./...")...)
}

// tagged runs the tests below test/<tag> that carry the build tag of the same name: they
// need servers or client libraries that a plain `go test ./...` must not ask for, or more time.
func tagged(tag string, flags ...string) func(context.Context, *job) error {
	return func(ctx context.Context, j *job) error {
		if _, err := os.Stat(filepath.Join("test", tag)); err != nil {
			return errNothing
		}
		args := append([]string{"-tags", tag, "-timeout", "12m"}, flags...)
		return j.goTest(ctx, append(args, "./test/"+tag+"/...")...)
	}
}

// docs regenerates the generated pages and fails if that changed any: the comparison is with
// the pages as they lie there, so that it also works before they are committed.
func docs(ctx context.Context, j *job) error {
	before, err := readAll("docs")
	if err != nil {
		return err
	}
	if err := j.exec(ctx, "go", "run", "./cmd/streamproxy", "docs", "--out", "docs"); err != nil {
		return err
	}
	after, err := readAll("docs")
	if err != nil {
		return err
	}
	var stale []string
	for name, text := range after {
		if !bytes.Equal(before[name], text) {
			stale = append(stale, name)
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("stale, now rewritten: %s", strings.Join(stale, ", "))
	}
	return nil
}

func readAll(folder string) (map[string][]byte, error) {
	files := map[string][]byte{}
	paths, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if files[path], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return files, nil
}

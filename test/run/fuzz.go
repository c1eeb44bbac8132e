package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// fuzzTarget is one fuzz function and the package that holds it.
type fuzzTarget struct{ pkg, name string }

var fuzzFunc = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// costly are the targets whose runs take long because of what they start. They get so
// many times fewer of them.
var costly = map[string]int{"FuzzSession": 100, "FuzzHostileServer": 10}

// minimize bounds how long an input is made smaller, which else takes a minute for each
// that is new: all the time of a short run.
const minimize = "20x"

// runsOf is what a target gets of the time given to each. Seconds are the same to all.
func runsOf(target, given string) string {
	number, counted := strings.CutSuffix(given, "x")
	n, err := strconv.Atoi(number)
	if divisor := costly[target]; counted && err == nil && divisor > 0 {
		return strconv.Itoa(max(n/divisor, 1)) + "x"
	}
	return given
}

// fuzz runs each fuzz target below the current folder for the job's fuzz time. The go command
// fuzzes one target at a time, so each is a run of its own. Unless asked otherwise it counts runs
// and not seconds: a target that is at work when its time ends is now and then called failed by the
// go command, with "context deadline exceeded" and no input to show for it.
func fuzz(ctx context.Context, j *job) error {
	targets, err := findFuzzTargets(os.DirFS("."))
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return errNothing
	}
	var failures []error
	for _, t := range targets {
		fmt.Fprintf(j.out, "%s in %s\n", t.name, t.pkg)
		err := j.goTest(ctx, "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", runsOf(t.name, j.fuzzTime),
			"-fuzzminimizetime", minimize, t.pkg)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// findFuzzTargets scans the test files of a tree, leaving out hidden folders and test data.
func findFuzzTargets(tree fs.FS) ([]fuzzTarget, error) {
	var targets []fuzzTarget
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		for _, match := range fuzzFunc.FindAllSubmatch(text, -1) {
			targets = append(targets, fuzzTarget{"./" + filepath.Dir(path), string(match[1])})
		}
		return nil
	})
	return targets, err
}

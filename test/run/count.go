package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// tally counts tests and subtests by outcome.
type tally struct{ passed, failed, skipped int }

func (t *tally) add(other tally) {
	t.passed += other.passed
	t.failed += other.failed
	t.skipped += other.skipped
}

// String is the closing line of a test run, in the words that machines look for.
func (t tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

// event is one line of `go test -json`, see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string
	Output     string
	Elapsed    float64
}

// count reads the events of `go test -json`, prints one line per package and everything that a
// failed or skipped test said, and returns the number of tests by outcome. A package that
// fails without a failed test (it does not build, it panics, it times out) counts as one.
func count(in io.Reader, out io.Writer) (tally, error) {
	c := counter{out: out, said: map[string][]string{}, failures: map[string]int{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(out, lines.Text()) // the go command itself speaking
			continue
		}
		c.take(e)
	}
	return c.tally, lines.Err()
}

// counter holds what tests said until it is known whether anybody wants to read it.
type counter struct {
	out      io.Writer
	tally    tally
	said     map[string][]string // by package and test
	failures map[string]int      // by package
}

func (c *counter) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		c.said[key] = append(c.said[key], e.Output)
	case "build-output":
		fmt.Fprint(c.out, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			c.closePackage(e, key)
		} else {
			c.closeTest(e, key)
		}
		delete(c.said, key)
	}
}

func (c *counter) closeTest(e event, key string) {
	switch e.Action {
	case "pass":
		c.tally.passed++
		return
	case "skip":
		c.tally.skipped++
	case "fail":
		c.tally.failed++
		c.failures[e.Package]++
	}
	fmt.Fprint(c.out, strings.Join(c.said[key], ""))
}

func (c *counter) closePackage(e event, key string) {
	switch e.Action {
	case "skip": // no tests in it
		return
	case "fail":
		if c.failures[e.Package] == 0 {
			c.tally.failed++
		}
		// A test that was running when the process died never got an end of its own.
		for other, lines := range c.said {
			if strings.HasPrefix(other, e.Package+" ") && other != key {
				fmt.Fprint(c.out, strings.Join(lines, ""))
			}
		}
		fmt.Fprint(c.out, strings.Join(c.said[key], ""))
		return
	}
	fmt.Fprintf(c.out, "ok   %-40s %6.2fs\n", e.Package, e.Elapsed)
}

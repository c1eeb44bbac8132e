package main

import (
	"bytes"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"streamproxy/internal/config"
)

// script is what the command prints for a shell.
func script(t *testing.T, shell string) string {
	t.Helper()
	var out bytes.Buffer
	if err := complete(t.Context(), []string{shell}, process{stdout: &out}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// inBash asks the script what may stand for the last of some words, split as bash splits them.
func inBash(t *testing.T, words ...string) []string {
	t.Helper()
	const ask = `set -u; eval "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _streamproxy; printf '%s\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"}`
	cmd := exec.Command("bash", append([]string{"-c", ask, "bash", script(t, "bash"), "streamproxy"}, words...)...)
	cmd.Dir = "testdata"
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", words, err, out)
	}
	return strings.Fields(string(out))
}

func TestBashCompletes(t *testing.T) {
	for _, tt := range []struct {
		words []string
		want  string
	}{
		{[]string{"che"}, "check"},
		{[]string{"--max-f"}, "--max-flush-delay"},
		{[]string{"check", "--di"}, "--dial --dial-timeout"},
		{[]string{"--log-level", ""}, "debug info warn error"},
		{[]string{"--log-level", "=", "w"}, "warn"},
		{[]string{"--log-level", "="}, "debug info warn error"},
		{[]string{"--maxclients", "9", "--log-f"}, "--log-format"},
		{[]string{"--log-format", "text", "--reclaim-k"}, "--reclaim-key-prefix"},
		{[]string{"--upstream-insecure", "--max-l"}, "--max-lanes"},
		{[]string{"check", "--reclaim", "o"}, "on observe off"},
		{[]string{"wait", "--for", ""}, "drained ready started"},
		{[]string{"wait", "--f"}, "--for"},
		{[]string{"wait", "--max"}, ""},
		{[]string{"version", ""}, "--help"},
		{[]string{"completion", "z"}, "zsh"},
		{[]string{"--maxclients", ""}, ""},
		{[]string{"wait", "--timeout", ""}, ""},
		{[]string{"--upstream-ca-file", "scr"}, "script"},
		{[]string{"--tls-key-file", "=", "scr"}, "script"},
		{[]string{"docs", "--out", "scr"}, "script"},
	} {
		if got := inBash(t, tt.words...); !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%q: got %q, want %s", tt.words, got, tt.want)
		}
	}
	if got := inBash(t, ""); !slices.Contains(got, "demo") || !slices.Contains(got, "--upstream") {
		t.Errorf("at the beginning: %q", got)
	}
}

// Every subcommand, every flag and every value of which there are but a few stands in every script.
func TestCompletionHasEverything(t *testing.T) {
	c := config.Default(config.Machine{})
	flagOf := map[string]string{"bash": "--", "zsh": "--", "fish": "-l "}
	for _, shell := range shellNames() {
		text := script(t, shell)
		has := func(what string) {
			if !regexp.MustCompile(`(^|[^-\w]|\*)` + regexp.QuoteMeta(what) + `($|[^-\w])`).MatchString(text) {
				t.Errorf("%s: %s is missing", shell, what)
			}
		}
		for _, cmd := range commands() {
			has(cmd.name)
			for _, word := range cmd.words {
				has(word)
			}
		}
		for _, g := range config.Groups(&c) {
			for _, f := range g.Flags {
				has(flagOf[shell] + f.Name)
				if !f.Alone() && len(f.Words()) > 0 {
					has(strings.Join(f.Words(), " "))
				}
			}
		}
	}
}

// The usage of a subcommand names flags that it has.
func TestUsageNamesOwnFlags(t *testing.T) {
	for _, c := range commands() {
		for _, name := range regexp.MustCompile(`-[a-z][a-z-]*`).FindAllString(c.args, -1) {
			if c.own == nil || c.own().Lookup(strings.TrimLeft(name, "-")) == nil {
				t.Errorf("%s has no flag %s", c.name, name)
			}
		}
	}
}

// The other shells that are here at least read their scripts.
func TestCompletionIsReadable(t *testing.T) {
	for _, shell := range shellNames() {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("there is no %s here", shell)
			continue
		}
		cmd := exec.Command(path, "-n")
		cmd.Stdin = strings.NewReader(script(t, shell))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}

func TestCompletionOfUnknownShells(t *testing.T) {
	for _, args := range [][]string{nil, {"tcsh"}, {"bash", "zsh"}, {"bash", "--nope"}} {
		if err := complete(t.Context(), args, process{stdout: &bytes.Buffer{}}); exitCode(err) != exitConfig {
			t.Errorf("%q: %v", args, err)
		}
	}
}

package config

import (
	"errors"
	"flag"
	"strings"
	"testing"
)

// Whatever the arguments are: no panic, an error of a known kind, and a configuration
// that is accepted reads back as itself. One argument stands on each line.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"--max-lanes\n5", "--max-lanes", "--listen=:1\n--listen\n:2", "---x", "-=", "--", "-", "", "--dial", "--dial=x",
		"--max-flush-delay=auto", "--memory-limit=9223372036854775807", "--client-idle-timeout=1h0m", "--shared-commands=a, b",
		"--upstream\nredis://u:p@h", "--threads=+5", "--listen=unix:///x?mode=0660", "-h",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "-file") {
			return // reads files
		}
		own := flag.NewFlagSet("own", flag.ContinueOnError)
		own.Bool("dial", false, "")
		l, err := Load(strings.Split(text, "\n"), nil, testMachine, own)
		var faults Faults
		switch {
		case errors.Is(err, ErrHelp) || errors.As(err, &faults):
			return
		case err != nil:
			t.Fatalf("an error of another kind: %v", err)
		}
		var args []string
		for _, fl := range flags(&l.Config) {
			args = append(args, "--"+fl.Name+"="+fl.field.String())
		}
		again, err := Load(args, nil, testMachine, nil)
		if err != nil {
			t.Fatalf("accepted once, then not: %v", err)
		}
		for i, fl := range flags(&again.Config) {
			if got, want := "--"+fl.Name+"="+fl.field.String(), args[i]; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

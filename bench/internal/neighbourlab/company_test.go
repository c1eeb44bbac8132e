package neighbourlab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// script is a program that does this in the place of a child.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "child")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReportOfAChild(t *testing.T) {
	tests := []struct {
		name, script, fails string
		want                Force
	}{
		{"told, it answers", `echo ready; read a; test "$a" = end && echo '{"connections":3,"refused":2,"bytes":100}'`, "", Force{3, 2, 100}},
		{"no report", `echo ready; read a; echo broken >&2; exit 3`, "exit status 3; broken", Force{}},
		{"half a report", `echo ready; read a; printf '{"conn'`, `reported "{\"conn"`, Force{}},
		{"no JSON", `echo ready; read a; echo hello`, `reported "hello\n"`, Force{}},
	}
	for _, tt := range tests {
		c, err := start(t.Context(), script(t, tt.script), true, "attackers")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		c.tell(tellEnd)
		var got Force
		err = c.report(&got)
		if tt.fails == "" && (err != nil || got != tt.want) || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
			t.Errorf("%s: %+v, %v; want %+v, %q", tt.name, got, err, tt.want, tt.fails)
		}
		c.stop()
	}
}

func TestAChildThatIsNotReady(t *testing.T) {
	_, err := start(t.Context(), script(t, `echo "$1 $2: no such server" >&2; exit 1`), false, "neighbours", "there")
	if err == nil || !strings.Contains(err.Error(), Command+" neighbours: no such server") {
		t.Errorf("error %v", err)
	}
}

func TestStopEndsAChildThatGoesOn(t *testing.T) {
	c, err := start(t.Context(), script(t, "echo ready; exec sleep 60"), false, "attackers")
	if err != nil {
		t.Fatal(err)
	}
	c.stop()
	if c.cmd.ProcessState == nil {
		t.Error("it still lives")
	}
	c.stop() // once is enough
}

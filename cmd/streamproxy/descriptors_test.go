package main

import (
	"math"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"streamproxy/internal/config"
	"streamproxy/internal/redistest"
)

func TestFitClients(t *testing.T) {
	for _, tt := range []struct {
		wanted int
		files  uint64
		want   int
	}{
		{10000, math.MaxUint64, 10000},
		{10000, 20192, 10000},
		{10000, 20191, 9999},
		{10000, 1024, 416},
		{10, 212, 10},
		{10000, 256, 64},
		{10000, 64, 16},
		{10000, 1, 1},
	} {
		c := &config.Loaded{Config: config.Default(config.Machine{}), Changed: []config.Setting{{Name: "maxclients", Value: "10000"}}}
		c.MaxClients = tt.wanted
		fitClients(c, tt.files)
		lowered := tt.want != tt.wanted
		if c.MaxClients != tt.want || (len(c.Warnings) == 1) != lowered || (c.Changed[0].Value != "10000") != lowered {
			t.Errorf("%d with %d files: %d, shown as %s; warned %q; want %d", tt.wanted, tt.files, c.MaxClients, c.Changed[0].Value, c.Warnings, tt.want)
		}
	}
}

// The limit that counts is the hard one, and the lowered number is in force.
func TestFewOpenFilesLowerMaxClients(t *testing.T) {
	t.Parallel()
	limited := []string{"sh", "-c", `ulimit -Sn 128; ulimit -Hn 256; exec streamproxy "$@"`, "streamproxy"}
	r := startProxyAs(t, nil, limited, redistest.Start(t).URL(), "--drain-idle=1ms")
	if got, err := r.client().Do("PROXY", "CONFIG"); err != nil || !strings.Contains(got, "--maxclients=64\n") {
		t.Errorf("%q, %v", got, err)
	}
	r.signal(syscall.SIGTERM)
	r.exit(exitOK)
	const want = "--maxclients is lowered from 10000 to 64: that many need 20192 open files, this process may have 25"
	if got := r.stderr.String(); !strings.Contains(got, want) {
		t.Errorf("logged %s", got)
	}
	checked, err := exec.Command(limited[0], append(limited[1:], "check")...).CombinedOutput()
	if err != nil || !strings.Contains(string(checked), "warning: "+want) {
		t.Errorf("check: %v, %s", err, checked)
	}
}

package main

import (
	"bytes"
	"log/slog"
	"math"
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
		{10000, 12692, 10000},
		{10000, 12691, 9999},
		{10000, 1024, 665},
		{10, 204, 10},
		{10000, 256, 102},
		{10000, 64, 25},
		{10000, 1, 1},
	} {
		c := &config.Loaded{Config: config.Default(config.Machine{}), Changed: []config.Setting{{Name: "maxclients", Value: "10000"}}}
		c.MaxClients = tt.wanted
		var text bytes.Buffer
		fitClients(c, tt.files, slog.New(slog.NewTextHandler(&text, nil)))
		lowered := tt.want != tt.wanted
		if c.MaxClients != tt.want || strings.Contains(text.String(), "is lowered") != lowered || (c.Changed[0].Value != "10000") != lowered {
			t.Errorf("%d with %d files: %d, shown as %s; logged %q; want %d", tt.wanted, tt.files, c.MaxClients, c.Changed[0].Value, text.String(), tt.want)
		}
	}
}

// The limit that counts is the hard one, and the lowered number is in force.
func TestFewOpenFilesLowerMaxClients(t *testing.T) {
	t.Parallel()
	limited := []string{"sh", "-c", `ulimit -Sn 128; ulimit -Hn 256; exec streamproxy "$@"`, "streamproxy"}
	r := startProxyAs(t, nil, limited, redistest.Start(t).URL(), "--drain-idle=1ms")
	if got, err := r.client().Do("PROXY", "CONFIG"); err != nil || !strings.Contains(got, "--maxclients=102\n") {
		t.Errorf("%q, %v", got, err)
	}
	r.signal(syscall.SIGTERM)
	r.exit(exitOK)
	if got := r.stderr.String(); !strings.Contains(got, `"maxclients":102,"wanted":10000,"open_files":25`) {
		t.Errorf("logged %s", got)
	}
}

package main

import (
	"strings"
	"testing"

	"streamproxy/bench/internal/result"
)

// TestMeasureDirect runs the whole frame against a server alone.
func TestMeasureDirect(t *testing.T) {
	folder := t.TempDir()
	var out strings.Builder
	args := []string{"--sides", "direct", "--rounds", "2", "--duration", "100ms", "--warmup", "10ms", "--cells", "4x2", "--commands", "SET", "--out", folder}
	if err := throughput(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	r, err := result.Load(folder + "/throughput.json")
	if err != nil {
		t.Fatal(err)
	}
	direct := r.Cells[0].Of("direct")
	if direct == nil || len(direct.Rounds) != 2 {
		t.Fatalf("cells %+v", r.Cells)
	}
	for _, s := range direct.Rounds {
		if s.Ops <= 0 || s.P50 <= 0 || s.P50 > s.P999 || s.ClientCPU <= 0 || s.ProxyCPU != 0 {
			t.Errorf("sample %+v", s)
		}
	}
	if r.Setup.Cores == 0 || r.Setup.Redis == "" || !strings.Contains(r.Setup.Flags, "--rounds 2") {
		t.Errorf("setup %+v", r.Setup)
	}
}

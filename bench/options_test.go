package main

import (
	"strings"
	"testing"
	"time"
)

func TestParseOptions(t *testing.T) {
	tests := []struct {
		args     string
		rounds   int
		duration time.Duration
		fails    string
	}{
		{"", 5, 2 * time.Second, ""},
		{"--quick", 3, 500 * time.Millisecond, ""},
		{"--quick --rounds 7 --duration 1s", 7, time.Second, ""},
		{"--rounds 0", 0, 0, "--rounds 0: at least 1"},
		{"--check --rounds 4", 0, 0, "a check needs at least 5"},
		{"--duration 1ms", 0, 0, "at least 100ms"},
		{"more", 0, 0, `unexpected arguments ["more"]`},
	}
	for _, tt := range tests {
		o, err := parse("test", strings.Fields(tt.args), []string{"direct"}, nil)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%q: error %v, want %q", tt.args, err, tt.fails)
			}
			continue
		}
		if err != nil || o.rounds != tt.rounds || o.duration != tt.duration {
			t.Errorf("%q: %+v, %v", tt.args, o, err)
		}
	}
}

func TestParseCells(t *testing.T) {
	cells, err := parseCells("50x1,500×16", "SET,GET")
	if err != nil || len(cells) != 4 {
		t.Fatalf("%v, %v", cells, err)
	}
	if got := cells[3].Name(); got != "GET C=500 P=16" {
		t.Error(got)
	}
	for _, wrong := range []string{"50", "0x1", "ax1", "1x1001", ""} {
		if _, err := parseCells(wrong, "GET"); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
	if _, err := parseCells("1x1", "FLUSHALL"); err == nil {
		t.Error("FLUSHALL was accepted")
	}
}

func TestUsage(t *testing.T) {
	var out strings.Builder
	for _, args := range [][]string{nil, {"speed"}} {
		if err := run(t.Context(), args, &out); err == nil || !strings.Contains(err.Error(), "usage") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

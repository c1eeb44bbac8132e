package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"streamproxy/bench/internal/neighbourlab"
)

// TestMain lets the tests' own binary be the child that a measurement starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == neighbourlab.Command {
		if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestParseNeighbours(t *testing.T) {
	tests := []struct{ args, sides, fails string }{
		{"", "direct streamproxy", ""},
		{"--delay 28ms --sides direct,streamproxy:threads=2", "direct:rtt=28ms streamproxy:threads=2:rtt=28ms", ""},
		{"--only pop-and-leave,guesses --runs 3 --time 1s", "direct streamproxy", ""},
		{"--only nothing", "", `--only: attack "nothing"`},
		{"--runs 0", "", "--runs 0: at least 1"},
		{"--time 1ms", "", "at least 100ms"},
		{"--delay -1s", "", "--delay -1s: at least 0"},
		{"more", "", `further arguments ["more"]`},
	}
	for _, tt := range tests {
		o, err := parseNeighbours(strings.Fields(tt.args))
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%q: %v, want %q", tt.args, err, tt.fails)
			}
			continue
		}
		if err != nil || strings.Join(o.sides, " ") != tt.sides {
			t.Errorf("%q: %+v, %v", tt.args, o, err)
		}
	}
}

func TestOnlySomeAttacks(t *testing.T) {
	o, err := parseNeighbours([]string{"--only", "guesses,pings"})
	if err != nil {
		t.Fatal(err)
	}
	all := o.attacks()
	if len(all) != 3 || all[0] != nil || all[1].Name != "pings" || all[2].Name != "guesses" {
		t.Errorf("a quiet row and the attacks in their order: %v", all)
	}
	o.only = nil
	if all = o.attacks(); len(all) != 1+len(neighbourlab.Attacks()) {
		t.Errorf("%d rows of all attacks", len(all))
	}
}

// TestNeighboursOfAServer lives through a short attack with everything real but the proxy.
func TestNeighboursOfAServer(t *testing.T) {
	folder := t.TempDir()
	o, err := parseNeighbours([]string{"--sides", "direct", "--only", "pop-and-leave", "--time", "500ms", "--out", folder})
	if err != nil {
		t.Fatal(err)
	}
	o.stand.Warmup, o.stand.After = 50*time.Millisecond, 500*time.Millisecond
	var out strings.Builder
	if err := o.run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	r, err := neighbourlab.Load(folder)
	if err != nil || len(r.Runs) != 1 || len(r.Runs[0].Cells) != 2 {
		t.Fatalf("report %+v, %v", r, err)
	}
	for _, cell := range r.Runs[0].Cells {
		more := cell.Series[0].Rounds[0].More
		for _, name := range []string{neighbourlab.Get, neighbourlab.Transaction, neighbourlab.Pop, neighbourlab.Connect, neighbourlab.Timer} {
			p50, most := more[neighbourlab.Quantity(name, "p50")], more[neighbourlab.Quantity(name, "max")]
			if p50 <= 0 || most < p50 || more[neighbourlab.Quantity(name, "after max")] <= 0 {
				t.Errorf("%s, %s: %v", cell.Title, name, more)
			}
		}
		if attacked := more[neighbourlab.Attackers] > 0; attacked != (cell.Title != neighbourlab.Quiet) {
			t.Errorf("%s: %v connections of attackers", cell.Title, more[neighbourlab.Attackers])
		}
	}
	if !strings.Contains(out.String(), "\n| pop-and-leave | direct |") {
		t.Errorf("no table in\n%s", out.String())
	}
	page := t.TempDir()
	if err := report(t.Context(), []string{"--results", folder, "--docs", page, "--readme", ""}, &out); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(page + "/benchmarks.md"); err != nil || !strings.Contains(string(text), "## Neighbours") {
		t.Errorf("the page: %v\n%s", err, text)
	}
}

package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	all := []stage{{name: "fast", quick: true}, {name: "slow"}}
	tests := []struct {
		quick   bool
		only    string
		want    string
		wantErr string
	}{
		{want: "fast, slow"},
		{quick: true, want: "fast"},
		{only: "slow", want: "slow"},
		{only: "slow,fast", want: "slow, fast"},
		{only: "slwo", wantErr: `"slwo": no such stage; there are fast, slow`},
	}
	for _, tt := range tests {
		got, err := choose(all, tt.quick, tt.only)
		if tt.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("only %q: error %v, want %q", tt.only, err, tt.wantErr)
			}
		} else if err != nil || names(got) != tt.want {
			t.Errorf("quick %v only %q: %s, %v; want %s", tt.quick, tt.only, names(got), err, tt.want)
		}
	}
}

func TestStagesGoOnAfterAFailure(t *testing.T) {
	broken := errors.New("broken")
	all := []stage{
		{name: "first", run: func(context.Context, *job) error { return broken }},
		{name: "second", run: func(_ context.Context, j *job) error { j.tally.passed = 3; return nil }},
		{name: "third", run: func(context.Context, *job) error { return errNothing }},
	}
	var out strings.Builder
	results := runStages(t.Context(), &job{out: io.Discard}, all)
	err := summarise(&out, results, false)
	if err == nil || err.Error() != "stages: first" {
		t.Errorf("error %v, want the failed stage named", err)
	}
	if !strings.HasSuffix(out.String(), "\n3 passed, 1 failed, 0 skipped\n") {
		t.Errorf("closing line:\n%s", out.String())
	}
}

func TestSkipsFailUnlessAllowed(t *testing.T) {
	results := []result{{stage: "unit", tally: tally{passed: 2, skipped: 1}}}
	if err := summarise(io.Discard, results, false); err == nil {
		t.Error("a skip passed")
	}
	if err := summarise(io.Discard, results, true); err != nil {
		t.Errorf("an allowed skip failed: %v", err)
	}
}

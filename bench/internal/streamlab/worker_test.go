package streamlab

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestWorkerTells(t *testing.T) {
	w, err := startScript("sh", "-c", "echo listening 5; echo read 7 0 1; echo got 8 message-1; echo read 20 11 0; exec cat")
	if err != nil {
		t.Fatal(err)
	}
	defer w.kill()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.wait(ctx, func(t *told) bool { return len(t.reads) == 2 }); err != nil {
		t.Fatal(err)
	}
	got := w.snapshot()
	if got.listening != 5 || len(got.arrivals) != 1 || got.arrivals[0] != (arrival{8, "message-1"}) || got.reads[1] != (read{20, 11, 0}) {
		t.Errorf("told %+v", got)
	}
}

func TestWorkerFaults(t *testing.T) {
	for script, want := range map[string]string{
		"echo bad luck >&2; exit 3": "exit status 3",
		"echo got 8; exec cat":      `worker said "got 8"`,
		"echo hello; exec cat":      `worker said "hello"`,
		"echo read 1 2; exec cat":   `worker said "read 1 2"`,
	} {
		w, err := startScript("sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err = w.wait(ctx, func(*told) bool { return false })
		cancel()
		w.kill()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", script, err, want)
		}
	}
}

// The clock is the one that other processes read as the monotonic one, so it is no date.
func TestNowAdvances(t *testing.T) {
	first := now()
	if second := now(); second < first || time.Duration(first) > 100*365*24*time.Hour {
		t.Errorf("%v, then %v", first, second)
	}
}

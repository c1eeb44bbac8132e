package redistest

import (
	"os"
	"testing"
	"time"
)

func TestParseCPU(t *testing.T) {
	got, err := parseCPU("12 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0 4 0")
	if err != nil || got != 1750*time.Millisecond {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "12 (a) S 1 2", "12 (a) S 1 2 3 4 5 6 7 8 9 10 x 25"} {
		if got, err := parseCPU(bad); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}

func TestProcessCPU(t *testing.T) {
	if _, err := ProcessCPU(os.Getpid()); err != nil {
		t.Error(err)
	}
	if _, err := ProcessCPU(-1); err == nil {
		t.Error("a process that is not there used time")
	}
}

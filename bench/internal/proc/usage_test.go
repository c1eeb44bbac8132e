package proc

import (
	"os"
	"testing"
	"time"
)

func TestParseCPU(t *testing.T) {
	tests := []struct {
		name, stat string
		want       time.Duration
		fails      bool
	}{
		{"plain", "1 (redis-server) S 1 1 1 0 -1 4194560 5 0 0 0 12 30 0 0 20 0 4 0 99", 420 * time.Millisecond, false},
		{"a name with blanks and parentheses", "1 (a) b (c) R 1 1 1 0 -1 4194560 5 0 0 0 1 2 0 0 20", 30 * time.Millisecond, false},
		{"cut off", "1 (x) S 1 1", 0, true},
		{"no name", "1 2 3", 0, true},
	}
	for _, tt := range tests {
		got, err := parseCPU([]byte(tt.stat))
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

func TestOwnUsage(t *testing.T) {
	began, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for spent := began; spent-began < 2*clockTick; {
		if spent, err = CPU(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if rss, err := RSS(os.Getpid()); err != nil || rss < 1<<20 {
		t.Errorf("resident memory %d, %v", rss, err)
	}
}

func TestDescriptors(t *testing.T) {
	before, err := Descriptors(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if with, err := Descriptors(os.Getpid()); err != nil || with != before+1 {
		t.Errorf("%d descriptors and one more: %d, %v", before, with, err)
	}
}

package differential

import (
	"path/filepath"
	"testing"
)

// TestKept plays the scripts that once showed a difference.
func TestKept(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	p := newPair(t)
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { replay(t, p, f) })
	}
}

package main

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestFindFuzzTargets(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tree := fstest.MapFS{
		"a/a_test.go":          file("func FuzzOne(f *testing.F) {\n}\n\nfunc FuzzTwo(tf *testing.F) {}\n"),
		"a/a.go":               file("func FuzzNot(f *testing.F) {}\n"),
		"a/testdata/x_test.go": file("func FuzzData(f *testing.F) {}\n"),
		".cache/m/m_test.go":   file("func FuzzOther(f *testing.F) {}\n"),
		"b/c/c_test.go":        file("// func FuzzComment(f *testing.F)\nfunc TestX(t *testing.T) {}\n"),
	}
	got, err := findFuzzTargets(tree)
	want := []fuzzTarget{{"./a", "FuzzOne"}, {"./a", "FuzzTwo"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestRunsOf(t *testing.T) {
	for _, tt := range []struct{ target, given, want string }{
		{"FuzzCommands", "100000x", "100000x"},
		{"FuzzSession", "100000x", "1000x"},
		{"FuzzSession", "10x", "1x"},
		{"FuzzSession", "10m", "10m"},
	} {
		if got := runsOf(tt.target, tt.given); got != tt.want {
			t.Errorf("%s, given %s: %s, want %s", tt.target, tt.given, got, tt.want)
		}
	}
}

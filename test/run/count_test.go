package main

import (
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  tally
		says  string
	}{
		{
			name: "one of each, with a subtest",
			lines: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/sub"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"no server\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestB"}`,
				`{"Action":"output","Package":"p","Test":"TestC","Output":"got 2\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestC"}`,
				`{"Action":"fail","Package":"p","Elapsed":0.1}`,
			},
			want: tally{2, 1, 1},
			says: "no server\ngot 2\n",
		},
		{
			name: "what a passed test said is dropped",
			lines: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
			},
			want: tally{1, 0, 0},
		},
		{
			name: "a package without tests is not a skip",
			lines: []string{
				`{"Action":"output","Package":"p","Output":"?   \tp\t[no test files]\n"}`,
				`{"Action":"skip","Package":"p"}`,
			},
		},
		{
			name: "a package that does not build counts as one failure",
			lines: []string{
				`{"ImportPath":"p","Action":"build-output","Output":"x.go:1: undefined: y\n"}`,
				`{"Action":"fail","Package":"p","Elapsed":0}`,
			},
			want: tally{0, 1, 0},
			says: "x.go:1: undefined: y\n",
		},
		{
			name: "a test cut off by a panic is shown",
			lines: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: no\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: tally{0, 1, 0},
			says: "panic: no\n",
		},
		{
			name:  "a line of the go command itself",
			lines: []string{`go: updates to go.mod needed`},
			says:  "go: updates to go.mod needed\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			got, err := count(strings.NewReader(strings.Join(tt.lines, "\n")), &out)
			if err != nil || got != tt.want || out.String() != tt.says {
				t.Errorf("got %v, %v, said %q; want %v and %q", got, err, out.String(), tt.want, tt.says)
			}
		})
	}
}

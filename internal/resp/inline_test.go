package resp

import (
	"errors"
	"slices"
	"testing"
)

// inlineCases follow sdssplitargs; server_test.go asks Redis about the same lines.
var inlineCases = []struct {
	line string
	args []string
	bad  bool
}{
	{line: "", args: nil},
	{line: " \t\v\f\r ", args: nil},
	{line: "PING", args: []string{"PING"}},
	{line: "  SET  k\tv  ", args: []string{"SET", "k", "v"}},
	{line: `SET k "a b"`, args: []string{"SET", "k", "a b"}},
	{line: `SET k 'a b'`, args: []string{"SET", "k", "a b"}},
	{line: `SET k ""`, args: []string{"SET", "k", ""}},
	{line: `""`, args: []string{""}},
	{line: `''  ''`, args: []string{"", ""}},
	{line: `"\x41\x4a\xzz\n\r\t\b\a\q\\\""`, args: []string{"AJxzz\n\r\t\b\aq\\\""}},
	{line: `'\x41\n\'\\ '`, args: []string{`\x41\n'\\ `}},
	{line: `'\\'`, bad: true},
	{line: `foo"bar baz"`, args: []string{"foobar baz"}},
	{line: `a\"b"`, args: []string{`a\b`}},
	{line: "a\vb\fc", args: []string{"a\vb\fc"}},
	{line: "\"a\"\v'b'", args: []string{"a", "b"}},
	{line: "a\rb", args: []string{"a", "b"}},
	{line: "\xff\xfe", args: []string{"\xff\xfe"}},
	{line: `"unclosed`, bad: true},
	{line: `'unclosed`, bad: true},
	{line: `"a"b`, bad: true},
	{line: `'a'b`, bad: true},
	{line: `"a\`, bad: true},
	{line: `"\x4`, bad: true},
	{line: `SET k "v`, bad: true},
}

func TestAppendInline(t *testing.T) {
	for _, c := range inlineCases {
		out, spans, err := AppendInline([]byte("x"), nil, []byte(c.line))
		if c.bad {
			var p *ProtocolError
			if !errors.As(err, &p) || p.Error() != "Protocol error: unbalanced quotes in request" {
				t.Errorf("%q: error %v", c.line, err)
			}
			continue
		}
		want := []byte("x")
		if c.args != nil {
			want = AppendCommand(want, c.args...)
		}
		if err != nil || string(out) != string(want) {
			t.Errorf("%q became %q, %v; want %q", c.line, out, err, want)
		}
		var args []string
		for _, s := range spans {
			args = append(args, string(out[1:][s.Start:s.End]))
		}
		if !slices.Equal(args, c.args) {
			t.Errorf("%q: spans show %q, want %q", c.line, args, c.args)
		}
	}
}

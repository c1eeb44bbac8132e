package differential

import "testing"

func TestTree(t *testing.T) {
	for _, raw := range []string{
		"+OK\r\n", "$-1\r\n", "*-1\r\n", "$0\r\n\r\n", "*0\r\n", "_\r\n", "$4\r\n\r\n\r\n\r\n",
		"*2\r\n:1\r\n*1\r\n$1\r\na\r\n", "%1\r\n+a\r\n~1\r\n#t\r\n", "|1\r\n+k\r\n+v\r\n*1\r\n:2\r\n",
	} {
		n, rest := parse(raw + "+next\r\n")
		if n.String() != raw || rest != "+next\r\n" {
			t.Errorf("%q became %q and %q", raw, n.String(), rest)
		}
	}
}

func TestSorted(t *testing.T) {
	n, _ := parse("*3\r\n$1\r\nc\r\n$1\r\na\r\n*2\r\n:2\r\n:1\r\n")
	n.sorted()
	if want := "$1\r\na\r\n"; n.kids[0].String() != want {
		t.Errorf("first is %q, want %q", n.kids[0].String(), want)
	}
	m, _ := parse("%2\r\n+z\r\n:1\r\n+a\r\n:2\r\n")
	m.sorted()
	if want := "%2\r\n+a\r\n:2\r\n+z\r\n:1\r\n"; m.String() != want {
		t.Errorf("%q, want %q: a value left its key", m.String(), want)
	}
}

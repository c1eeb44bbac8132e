package resp

import "testing"

func TestCommandArg(t *testing.T) {
	c := Command{Raw: []byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), Args: []Span{{8, 11}, {17, 18}}}
	if c.Len() != 2 || string(c.Arg(0)) != "GET" || string(c.Arg(1)) != "k" {
		t.Errorf("%d %q %q", c.Len(), c.Arg(0), c.Arg(1))
	}
	if c.Arg(-1) != nil || c.Arg(2) != nil {
		t.Error("an argument that is not there is not nil")
	}
	if cap(c.Arg(0)) != 3 {
		t.Error("appending to an argument would overwrite the command")
	}
}
